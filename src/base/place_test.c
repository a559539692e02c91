/* Places out of environments that are not this process' own. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/place.h"

#include "support/test.h"

#include <string.h>

/* NAME=value, up to a NULL. Of a test, so that bodies read like a shell. */
static const char *const *variables;

static const char *look_up(const char *name)
{
    size_t n = strlen(name);

    for (const char *const *v = variables; *v != NULL; v++)
        if (strncmp(*v, name, n) == 0 && (*v)[n] == '=')
            return *v + n + 1;
    return NULL;
}

static rdl_status read_place(const rdl_world_options *options,
                             const char *const *environment, rdl_place *out)
{
    variables = environment;
    return rdl_place_read(options, look_up, out);
}

#define READ(out, ...)                                                         \
    read_place(NULL, (const char *const[]){ __VA_ARGS__, NULL }, out)

RDL_TEST(an_empty_environment_is_a_world_of_one)
{
    rdl_place place;

    CHECK_OK(READ(&place, "RADDLE_FD=", "RANK=", "WORLD_SIZE="));
    CHECK_INT(place.rank, 0);
    CHECK_INT(place.size, 1);
    CHECK_INT(place.fd, -1);
    CHECK_INT(place.start_timeout_ms, 60000);
    CHECK_INT(place.timeout_ms, 300000);
    CHECK_INT(place.check, RDL_CHECK_ON);
}

RDL_TEST(raddle_run_comes_before_torchrun)
{
    rdl_place place;

    CHECK_OK(READ(&place, "RADDLE_FD=7", "RADDLE_RANK=2", "RADDLE_WORLD_SIZE=3",
                  "RANK=0", "WORLD_SIZE=8"));
    CHECK_INT(place.rank, 2);
    CHECK_INT(place.size, 3);
    CHECK_INT(place.fd, 7);
}

RDL_TEST(the_inner_launcher_comes_before_the_outer_one)
{
    rdl_place place;

    /* torchrun, started by srun; mpirun, started by srun as one task. */
    CHECK_OK(READ(&place, "RANK=3", "WORLD_SIZE=4", "TORCHELASTIC_RUN_ID=x",
                  "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_ID=0"));
    CHECK_INT(place.rank, 3);
    CHECK_OK(READ(&place, "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=3",
                  "PMIX_RANK=2", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=1",
                  "SLURM_STEP_ID=0"));
    CHECK_INT(place.rank, 2);
    CHECK_INT(place.size, 3);
    /* Those that agree. */
    CHECK_OK(READ(&place, "RANK=1", "WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=1",
                  "OMPI_COMM_WORLD_SIZE=2", "PMIX_RANK=1"));
    CHECK_INT(place.rank, 1);
    /* raddle run under any of them. */
    CHECK_OK(READ(&place, "RADDLE_FD=3", "RADDLE_RANK=1", "RADDLE_WORLD_SIZE=2",
                  "PMI_RANK=5", "PMI_SIZE=6", "RADDLE_SOCKET=/x"));
    CHECK_INT(place.size, 2);
    CHECK_TEXT(place.path, "");
}

/* A batch script has a rank and a number of tasks, and is one process. */
RDL_TEST(a_batch_script_of_slurm_is_a_world_of_one)
{
    rdl_place place;

    CHECK_OK(READ(&place, "SLURM_JOB_ID=7", "SLURM_PROCID=0", "SLURM_NTASKS=4"));
    CHECK_INT(place.size, 1);
    CHECK_OK(READ(&place, "SLURM_JOB_ID=7", "SLURM_PROCID=1", "SLURM_NTASKS=4",
                  "SLURM_STEP_ID=2", "SLURM_STEP_NUM_TASKS=2"));
    CHECK_INT(place.rank, 1);
    CHECK_INT(place.size, 2); /* the step's */
}

RDL_TEST(jobs_of_mpirun_and_srun_are_named_by_their_namespace_and_step)
{
    static const char *const others[] = { "RADDLE_JOB=b", "PMIX_NAMESPACE=b",
                                          "SLURM_JOB_ID=b", "SLURM_STEP_ID=b" };
    rdl_place first, second, other, torch;

    CHECK_OK(READ(&first, "PMI_RANK=0", "PMI_SIZE=2"));
    CHECK_OK(READ(&second, "PMI_RANK=1", "PMI_SIZE=2", "MASTER_PORT=1"));
    CHECK_TEXT(second.name, first.name);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CHECK_OK(READ(&other, "PMI_RANK=0", "PMI_SIZE=2", others[i]));
        CHECK(strcmp(other.name, first.name) != 0);
        CHECK(other.job != first.job);
    }
    CHECK_OK(READ(&torch, "RANK=0", "WORLD_SIZE=2"));
    CHECK(torch.job != first.job);
}

RDL_TEST(a_path_to_meet_at_is_taken_as_it_is)
{
    char text[200] = "RADDLE_SOCKET=/";
    const char *const environment[] = { text, "RANK=0", "WORLD_SIZE=2", NULL };
    size_t before = strlen(text) - 1;
    rdl_place place;

    memset(text + before + 1, 'x', RDL_PLACE_PATH - 2);
    CHECK_OK(read_place(NULL, environment, &place));
    CHECK_TEXT(place.path, text + before);
    text[before + RDL_PLACE_PATH - 1] = 'x';
    CHECK_STATUS(read_place(NULL, environment, &place), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "of at most 107 bytes");
}

RDL_TEST(options_come_before_the_environment)
{
    static const char *const environment[] = {
        "RADDLE_FD=7",         "RADDLE_RANK=x",
        "RADDLE_TIMEOUT=2",    "RADDLE_START_TIMEOUT=0.25",
        "RADDLE_CHECK=strict", NULL
    };
    rdl_world_options options = { .rank = 1, .size = 2 };
    rdl_place place;

    CHECK_OK(read_place(&options, environment, &place));
    CHECK_INT(place.rank, 1);
    CHECK_INT(place.fd, -1);
    CHECK_INT(place.timeout_ms, 2000); /* where the options say nothing */
    CHECK_INT(place.start_timeout_ms, 250);
    CHECK_INT(place.check, RDL_CHECK_STRICT);
    options.timeout_ms = 5;
    options.start_timeout_ms = 6;
    options.check = RDL_CHECK_OFF;
    CHECK_OK(read_place(&options, environment, &place));
    CHECK_INT(place.timeout_ms, 5);
    CHECK_INT(place.start_timeout_ms, 6);
    CHECK_INT(place.check, RDL_CHECK_OFF);
}

RDL_TEST(each_check_is_read_by_its_name)
{
    static const char *const texts[] = { "RADDLE_CHECK=", "RADDLE_CHECK=1",
                                         "RADDLE_CHECK=strict",
                                         "RADDLE_CHECK=0" };
    static const rdl_check checks[] = { RDL_CHECK_ON, RDL_CHECK_ON,
                                        RDL_CHECK_STRICT, RDL_CHECK_OFF };

    for (int i = 0; i < 4; i++) {
        rdl_place place;

        CHECK_OK(READ(&place, texts[i]));
        CHECK_INT(place.check, checks[i]);
    }
    CHECK_TEXT(rdl_check_name(RDL_CHECK_STRICT), "strict");
    CHECK_TEXT(rdl_check_name(RDL_CHECK_DEFAULT), "?");
    CHECK_TEXT(rdl_check_name((rdl_check)4), "?");
}

RDL_TEST(vectors_are_the_widest_unless_the_environment_names_others)
{
    rdl_place place;

    CHECK_OK(READ(&place, "RADDLE_ISA="));
    CHECK_INT(place.isa, rdl_isa_best());
    CHECK_OK(READ(&place, "RADDLE_ISA=base"));
    CHECK_INT(place.isa, RDL_ISA_BASE);
    if (!rdl_isa_runs(RDL_ISA_AVX512)) {
        CHECK_STATUS(READ(&place, "RADDLE_ISA=avx512"), RDL_UNSUPPORTED);
        CHECK_HAS(rdl_error_detail(),
                  "RADDLE_ISA: this processor has no avx512");
    } else {
        CHECK_OK(READ(&place, "RADDLE_ISA=avx512"));
        CHECK_INT(place.isa, RDL_ISA_AVX512);
    }
}

/* An environment that is refused, and the sentence. */
typedef struct wrong {
    const char *variables[5];
    rdl_status status;
    const char *sentence;
} wrong;

static const wrong wrongs[] = {
    { { "RADDLE_ISA=sse9" },
      RDL_INVALID,
      "RADDLE_ISA: 'sse9' is none of base, avx2, avx512" },
    { { "RADDLE_WAIT=soon" }, RDL_INVALID, "RADDLE_WAIT='soon' is none of spin" },
    { { "RADDLE_STAGING=0" },
      RDL_INVALID,
      "RADDLE_STAGING='0' is too little: a rank needs 4096 bytes" },
    { { "RADDLE_STAGING=-1" },
      RDL_INVALID,
      "RADDLE_STAGING='-1' is too little: a rank needs 4096 bytes" },
    { { "RADDLE_STAGING=4095" }, RDL_INVALID, "a rank needs 4096 bytes" },
    { { "RADDLE_STAGING=67108865" },
      RDL_INVALID,
      "RADDLE_STAGING='67108865' is too much: a rank has at most 67108864" },
    { { "RADDLE_STAGING=1e6" }, RDL_INVALID, "is not a whole number" },
    { { "RADDLE_STAGING=99999999999999999999" },
      RDL_INVALID,
      "RADDLE_STAGING='99999999999999999999' is outside" },
    { { "RANK=0" }, RDL_INVALID, "RANK is set and WORLD_SIZE is not" },
    { { "WORLD_SIZE=2" }, RDL_INVALID, "WORLD_SIZE is set and RANK is not" },
    { { "RANK=", "WORLD_SIZE=2" },
      RDL_INVALID,
      "WORLD_SIZE is set and RANK is not" },
    { { "RANK=zero", "WORLD_SIZE=2" },
      RDL_INVALID,
      "RANK='zero' is not a whole number" },
    { { "RANK=0x1", "WORLD_SIZE=2" },
      RDL_INVALID,
      "RANK='0x1' is not a whole number" },
    { { "RANK=1.5", "WORLD_SIZE=2" }, RDL_INVALID, "not a whole number" },
    { { "RANK=1 ", "WORLD_SIZE=2" }, RDL_INVALID, "not a whole number" },
    { { "RANK=0", "WORLD_SIZE=99999999999999999999" },
      RDL_INVALID,
      "WORLD_SIZE='99999999999999999999' is outside -2147483648..2147483647" },
    { { "RANK=0", "WORLD_SIZE=4294967298" },
      RDL_INVALID,
      "WORLD_SIZE='4294967298' is outside" },
    { { "RANK=-99999999999", "WORLD_SIZE=2" },
      RDL_INVALID,
      "RANK='-99999999999' is outside" },
    { { "OMPI_COMM_WORLD_RANK=0" },
      RDL_INVALID,
      "OMPI_COMM_WORLD_RANK is set and OMPI_COMM_WORLD_SIZE is not" },
    { { "OMPI_COMM_WORLD_RANK=4", "OMPI_COMM_WORLD_SIZE=4" },
      RDL_INVALID,
      "OMPI_COMM_WORLD_RANK 4 is outside 0..3 (OMPI_COMM_WORLD_SIZE is 4)" },
    { { "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=4",
        "OMPI_COMM_WORLD_LOCAL_SIZE=2" },
      RDL_UNSUPPORTED,
      "the world has 4 ranks and 2 of them are on this host "
      "(OMPI_COMM_WORLD_LOCAL_SIZE)" },
    { { "PMI_RANK=x", "PMI_SIZE=2" },
      RDL_INVALID,
      "PMI_RANK='x' is not a whole number" },
    { { "PMI_RANK=0", "PMI_SIZE=4", "MPI_LOCALNRANKS=3" },
      RDL_UNSUPPORTED,
      "MPI_LOCALNRANKS" },
    { { "SLURM_PROCID=0", "SLURM_NTASKS=4", "SLURM_STEP_ID=0",
        "SLURM_STEP_NUM_NODES=2" },
      RDL_UNSUPPORTED,
      "the world's 4 ranks are on 2 hosts (SLURM_STEP_NUM_NODES)" },
    { { "SLURM_PROCID=0", "SLURM_STEP_ID=0" },
      RDL_INVALID,
      "SLURM_PROCID is set and SLURM_NTASKS is not" },
    { { "RANK=1", "WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=2",
        "OMPI_COMM_WORLD_SIZE=4" },
      RDL_INVALID,
      "RANK=1 of WORLD_SIZE=4 contradicts OMPI_COMM_WORLD_RANK=2 of "
      "OMPI_COMM_WORLD_SIZE=4" },
    { { "PMI_RANK=1", "PMI_SIZE=2", "PMIX_RANK=0" },
      RDL_INVALID,
      "PMI_RANK=1 contradicts PMIX_RANK=0" },
    { { "RANK=0", "WORLD_SIZE=2", "RADDLE_SOCKET=here" },
      RDL_INVALID,
      "RADDLE_SOCKET='here' is not a path from /" },
    { { "RANK=-1", "WORLD_SIZE=2" }, RDL_INVALID, "RANK -1 is outside 0..1" },
    { { "RANK=2", "WORLD_SIZE=2" }, RDL_INVALID, "RANK 2 is outside 0..1" },
    { { "RANK=0", "WORLD_SIZE=0" },
      RDL_INVALID,
      "WORLD_SIZE 0 is outside 1..1024" },
    { { "RANK=0", "WORLD_SIZE=-4" }, RDL_INVALID, "WORLD_SIZE -4 is outside" },
    { { "RANK=0", "WORLD_SIZE=1025" }, RDL_INVALID, "1025 is outside 1..1024" },
    { { "RANK=0", "WORLD_SIZE=4", "LOCAL_WORLD_SIZE=2" },
      RDL_UNSUPPORTED,
      "the world has 4 ranks and 2 of them are on this host" },
    { { "RANK=0", "WORLD_SIZE=4", "LOCAL_WORLD_SIZE=8" },
      RDL_UNSUPPORTED,
      "LOCAL_WORLD_SIZE" },
    { { "RANK=0", "WORLD_SIZE=4", "LOCAL_WORLD_SIZE=many" },
      RDL_INVALID,
      "LOCAL_WORLD_SIZE='many' is not a whole number" },
    { { "RADDLE_FD=three", "RADDLE_RANK=0", "RADDLE_WORLD_SIZE=2" },
      RDL_INVALID,
      "RADDLE_FD='three' is not a whole number" },
    { { "RADDLE_FD=-1", "RADDLE_RANK=0", "RADDLE_WORLD_SIZE=2" },
      RDL_INVALID,
      "RADDLE_FD=-1 is no descriptor" },
    { { "RADDLE_FD=3" },
      RDL_INVALID,
      "RADDLE_FD is set and RADDLE_RANK and RADDLE_WORLD_SIZE are not" },
    { { "RADDLE_FD=3", "RADDLE_RANK=0" },
      RDL_INVALID,
      "RADDLE_RANK is set and RADDLE_WORLD_SIZE is not" },
    { { "RADDLE_FD=3", "RADDLE_RANK=5", "RADDLE_WORLD_SIZE=4" },
      RDL_INVALID,
      "RADDLE_RANK 5 is outside 0..3 (RADDLE_WORLD_SIZE is 4)" },
    { { "RADDLE_TIMEOUT=soon" },
      RDL_INVALID,
      "RADDLE_TIMEOUT='soon' is not a number of seconds above 0" },
    { { "RADDLE_TIMEOUT=0" }, RDL_INVALID, "seconds above 0" },
    { { "RADDLE_TIMEOUT=-3" }, RDL_INVALID, "seconds above 0" },
    { { "RADDLE_TIMEOUT=nan" }, RDL_INVALID, "seconds above 0" },
    { { "RADDLE_TIMEOUT=inf" }, RDL_INVALID, "seconds above 0" },
    { { "RADDLE_START_TIMEOUT=1s" }, RDL_INVALID, "RADDLE_START_TIMEOUT='1s'" },
    { { "RADDLE_CHECK=on" },
      RDL_INVALID,
      "RADDLE_CHECK='on' is none of 0, 1, strict" },
    { { "RADDLE_CHECK=STRICT" }, RDL_INVALID, "RADDLE_CHECK='STRICT'" },
    { { "RADDLE_CHECK=2" }, RDL_INVALID, "RADDLE_CHECK='2'" },
};

RDL_TEST(waits_and_staging_are_read_beside_the_place)
{
    rdl_place place;

    CHECK_OK(READ(&place, "RADDLE_WAIT=100,8", "RADDLE_STAGING=4096"));
    CHECK(place.wait.given);
    CHECK_INT(place.wait.spin, 100000);
    CHECK_INT(place.wait.yields, 8);
    CHECK_INT(place.staging_bytes, 4096);
    CHECK_OK(READ(&place, "RADDLE_WAIT=", "RADDLE_STAGING="));
    CHECK(!place.wait.given);
    CHECK_INT(place.staging_bytes, 0);
}

RDL_TEST(wrong_environments_are_refused_with_their_name_and_value)
{
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        rdl_place place = { .rank = 77 };

        CHECK_STATUS(read_place(NULL, wrongs[i].variables, &place),
                     wrongs[i].status);
        CHECK_HAS(rdl_error_detail(), wrongs[i].sentence);
        CHECK_INT(place.rank, 77);
    }
}

RDL_TEST(a_value_of_any_length_makes_a_sentence)
{
    char text[5000] = "RANK=";
    const char *const environment[] = { text, "WORLD_SIZE=2", NULL };
    rdl_place place;

    memset(text + 5, 'y', sizeof text - 6);
    CHECK_STATUS(read_place(NULL, environment, &place), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "RANK='yyy");
    CHECK(strlen(rdl_error_detail()) < 200);
}

/* What names a job: all of it counts, and nothing else. */
RDL_TEST(a_job_is_named_by_what_its_ranks_share)
{
    static const char *const others[] = { "RADDLE_JOB=b", "MASTER_ADDR=b",
                                          "MASTER_PORT=1",
                                          "TORCHELASTIC_RUN_ID=b",
                                          "TORCHELASTIC_RESTART_COUNT=1" };
    enum { N = sizeof others / sizeof *others };
    rdl_place first, second, other[N];

    CHECK_OK(READ(&first, "RANK=0", "WORLD_SIZE=2"));
    CHECK_OK(READ(&second, "RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1",
                  "LOCAL_WORLD_SIZE=2", "GROUP_RANK=0"));
    CHECK_TEXT(second.name, first.name);
    CHECK(second.job == first.job);
    for (int i = 0; i < N; i++) {
        CHECK_OK(READ(&other[i], "RANK=0", "WORLD_SIZE=2", others[i]));
        CHECK(strcmp(other[i].name, first.name) != 0);
        CHECK(other[i].job != first.job);
        for (int j = 0; j < i; j++)
            CHECK(strcmp(other[i].name, other[j].name) != 0);
    }
}

RDL_TEST(a_job_of_the_options_is_not_one_of_the_environment)
{
    rdl_world_options options = { .size = 2, .job = "b" };
    rdl_place of_options, unnamed, of_environment;

    CHECK_OK(read_place(&options, (const char *const[]){ NULL }, &of_options));
    options.job = "";
    CHECK_OK(read_place(&options, (const char *const[]){ NULL }, &unnamed));
    CHECK_OK(READ(&of_environment, "RADDLE_JOB=b", "RANK=0", "WORLD_SIZE=2"));
    CHECK(strcmp(of_options.name, of_environment.name) != 0);
    CHECK(strcmp(of_options.name, unnamed.name) != 0);
}

RDL_TEST(wrong_options_are_refused)
{
    static const struct {
        rdl_world_options options;
        const char *sentence;
    } wrong_options[] = {
        { { .rank = 2, .size = 2 }, "rank 2 is outside 0..1 (size is 2)" },
        { { .rank = -1, .size = 2 }, "rank -1 is outside 0..1" },
        { { .size = -1 }, "size -1 is outside 1..1024" },
        { { .size = RDL_MAX_RANKS + 1 }, "size 1025 is outside 1..1024" },
        { { .size = 2, .timeout_ms = -1 }, "a limit of -1 ms is negative" },
        { { .start_timeout_ms = -7 }, "a limit of -7 ms is negative" },
        { { .check = (rdl_check)4 }, "4 is no rdl_check" },
        { { .check = (rdl_check)-1 }, "-1 is no rdl_check" },
    };

    for (size_t i = 0; i < sizeof wrong_options / sizeof *wrong_options; i++) {
        rdl_place place;

        CHECK_STATUS(read_place(&wrong_options[i].options,
                                (const char *const[]){ NULL }, &place),
                     RDL_INVALID);
        CHECK_HAS(rdl_error_detail(), wrong_options[i].sentence);
    }
}
