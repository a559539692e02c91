// The ranks of gloo: gloo SOCKET RANKS. It makes them all, one process each, before it
// has a thread; they find each other through memory that they share, so that no file
// is left wherever they are killed.
// SPDX-License-Identifier: BSD-3-Clause
#include "speed/rank.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <memory>
#include <raddle/collective.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{

// --- the rendezvous ------------------------------------------------------------

struct Entry {
    std::atomic<bool> written;
    char key[128];
    size_t bytes;
    char value[65536];
};

// Zeroed, shared by all ranks, sparse.
struct Board {
    std::atomic<size_t> taken;
    Entry entries[1024];
};

class SharedStore : public gloo::rendezvous::Store
{
  public:
    explicit SharedStore(Board *board) : board_(board) {}

    void set(const std::string &key, const std::vector<char> &data) override
    {
        size_t at = board_->taken++;
        Entry *e = &board_->entries[at];

        if (at >= 1024 || key.size() >= sizeof e->key ||
            data.size() > sizeof e->value)
            throw std::runtime_error("the board is too small");
        memcpy(e->key, key.data(), key.size());
        memcpy(e->value, data.data(), data.size());
        e->bytes = data.size();
        e->written = true; // the last, so that a reader sees all of it
    }

    std::vector<char> get(const std::string &key) override
    {
        wait({ key });
        const Entry *e = find(key);

        return std::vector<char>(e->value, e->value + e->bytes);
    }

    void wait(const std::vector<std::string> &keys) override
    {
        for (const std::string &key : keys)
            while (find(key) == nullptr)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }

  private:
    const Entry *find(const std::string &key) const
    {
        for (size_t i = 0; i < board_->taken && i < 1024; i++)
            if (board_->entries[i].written && key == board_->entries[i].key)
                return &board_->entries[i];
        return nullptr;
    }

    Board *board_;
};

// --- the calls -----------------------------------------------------------------

// gloo has no bfloat16: its elements are 16-bit words, and we bring the sum.
void add_bfloat16(uint16_t *to, const uint16_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t a = (uint32_t)to[i] << 16, b = (uint32_t)from[i] << 16;
        float x, y;

        memcpy(&x, &a, sizeof x);
        memcpy(&y, &b, sizeof y);
        x += y;
        memcpy(&a, &x, sizeof a);
        to[i] = (uint16_t)((a + 0x7fff + (a >> 16 & 1)) >> 16);
    }
}

void sum_bfloat16(void *c, const void *a, const void *b, size_t n)
{
    if (c != a)
        memcpy(c, a, n * sizeof(uint16_t));
    add_bfloat16(static_cast<uint16_t *>(c), static_cast<const uint16_t *>(b), n);
}

void sum_float32(void *c, const void *a, const void *b, size_t n)
{
    gloo::sum<float>(static_cast<float *>(c), static_cast<const float *>(a),
                     static_cast<const float *>(b), n);
}

struct Home {
    std::shared_ptr<gloo::rendezvous::Context> context;
    // Its one reduce_scatter works in place, in an object made for a size.
    std::unique_ptr<gloo::Algorithm> scatter;
    std::vector<char> scattered;
    int dtype = -1;
    uint64_t bytes = 0;
};

const gloo::ReductionFunction<uint16_t> bfloat16_function(
    gloo::ReductionType::CUSTOM, add_bfloat16);

template <typename T> const gloo::ReductionFunction<T> *summing();

template <> const gloo::ReductionFunction<float> *summing<float>()
{
    return gloo::ReductionFunction<float>::sum;
}

template <> const gloo::ReductionFunction<uint16_t> *summing<uint16_t>()
{
    return &bfloat16_function;
}

void barrier(Home *h)
{
    gloo::BarrierOptions o(h->context);

    gloo::barrier(o);
}

// Made anew where the size changes; nobody may call before all have.
template <typename T>
void make_scatter(const speed_rank *self, Home *h, const speed_call *c)
{
    size_t n = c->bytes / sizeof(T);
    std::vector<int> counts((size_t)self->size, (int)(n / (size_t)self->size));

    h->scatter.reset();
    barrier(h);
    h->scattered.assign(c->bytes, 0);
    h->scatter.reset(new gloo::ReduceScatterHalvingDoubling<T>(
        h->context, { reinterpret_cast<T *>(h->scattered.data()) }, (int)n,
        counts, summing<T>()));
    h->dtype = c->dtype;
    h->bytes = c->bytes;
    barrier(h);
}

template <typename T>
void reduce_scatter(const speed_rank *self, Home *h, const speed_call *c)
{
    if (h->dtype != c->dtype || h->bytes != c->bytes)
        make_scatter<T>(self, h, c);
    memcpy(h->scattered.data(), c->input, c->bytes);
    h->scatter->run();
    memcpy(c->output, h->scattered.data(), c->bytes / (size_t)self->size);
}

template <typename T> void all_reduce(Home *h, const speed_call *c)
{
    gloo::AllreduceOptions o(h->context);

    o.setInput(static_cast<T *>(c->input), c->bytes / sizeof(T));
    o.setOutput(static_cast<T *>(c->output), c->bytes / sizeof(T));
    o.setReduceFunction(sizeof(T) == 4 ? sum_float32 : sum_bfloat16);
    gloo::allreduce(o);
}

template <typename T>
void all_gather(const speed_rank *self, Home *h, const speed_call *c)
{
    gloo::AllgatherOptions o(h->context);
    size_t n = c->bytes / sizeof(T);

    o.setInput(static_cast<T *>(c->input), n);
    o.setOutput(static_cast<T *>(c->output), n * (size_t)self->size);
    gloo::allgather(o);
}

template <typename T> void all_to_all(Home *h, const speed_call *c)
{
    gloo::AlltoallOptions o(h->context);

    o.setInput(static_cast<T *>(c->input), c->bytes / sizeof(T));
    o.setOutput(static_cast<T *>(c->output), c->bytes / sizeof(T));
    gloo::alltoall(o);
}

template <typename T> void broadcast(Home *h, const speed_call *c)
{
    gloo::BroadcastOptions o(h->context);

    o.setRoot(c->root);
    o.setOutput(static_cast<T *>(c->input), c->bytes / sizeof(T));
    gloo::broadcast(o);
}

template <typename T>
void call(const speed_rank *self, Home *h, const speed_call *c)
{
    switch (c->operation) {
    case SPEED_ALL_REDUCE:
        return all_reduce<T>(h, c);
    case SPEED_ALL_GATHER:
        return all_gather<T>(self, h, c);
    case SPEED_REDUCE_SCATTER:
        return reduce_scatter<T>(self, h, c);
    case SPEED_ALL_TO_ALL:
        return all_to_all<T>(h, c);
    case SPEED_BROADCAST:
        return broadcast<T>(h, c);
    default:
        return barrier(h);
    }
}

speed_outcome run(speed_rank *self, const speed_call *c, char text[256])
{
    Home *h = static_cast<Home *>(self->context);

    if (c->operation >= SPEED_PEER_OPERATIONS ||
        (c->dtype != RDL_FLOAT32 && c->dtype != RDL_BFLOAT16)) {
        snprintf(text, 256, "not in this program");
        return SPEED_UNSUPPORTED;
    }
    try {
        if (c->dtype == RDL_FLOAT32)
            call<float>(self, h, c);
        else
            call<uint16_t>(self, h, c);
    } catch (const std::exception &e) {
        snprintf(text, 256, "%s", e.what());
        return SPEED_BROKEN;
    }
    return SPEED_DONE;
}

int meet(speed_rank *self)
{
    try {
        barrier(static_cast<Home *>(self->context));
    } catch (const std::exception &) {
        return 0;
    }
    return 1;
}

// --- the ranks -----------------------------------------------------------------

int be_a_rank(const char *socket, int rank, int size, Board *board)
{
    Home home;
    speed_rank self = {};
    SharedStore store(board);
    gloo::transport::tcp::attr attr("127.0.0.1");
    std::shared_ptr<gloo::transport::Device> device =
        gloo::transport::tcp::CreateDevice(attr);

    home.context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    home.context->connectFullMesh(store, device);
    self.rank = self.place = rank;
    self.size = self.members = size;
    self.context = &home;
    self.run = run;
    self.meet = meet;
    return speed_serve(&self, socket);
}

} // namespace

int main(int argc, char **argv)
{
    int size = argc == 3 ? atoi(argv[2]) : 0, status, bad = 0;
    void *board = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (size < 1 || board == MAP_FAILED)
        return 2;
    for (int rank = 0; rank < size; rank++) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(be_a_rank(argv[1], rank, size, static_cast<Board *>(board)));
        bad |= pid < 0;
    }
    while (wait(&status) > 0)
        bad |= status != 0;
    return bad;
}
