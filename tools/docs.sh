# shellcheck shell=bash
# Man pages: docs/man/NAME.SECTION.md becomes a page. Sourced by ./dev.
# SPDX-License-Identifier: BSD-3-Clause

# render_man_pages FOLDER: into FOLDER/manN/NAME.N
render_man_pages()
{
    local page name section

    for page in docs/man/*.[1-8].md; do
        [ -e "$page" ] || continue
        name=${page##*/}
        name=${name%.md}
        section=${name##*.}
        mkdir -p "$1/man$section"
        # The names in a page are full of underscores, which are no emphasis.
        lowdown -s -t man --parse-no-intraemph --parse-no-metadata \
            --parse-no-super --out-no-smarty -m "title: ${name%.*}" \
            -m "section: $section" -m "source: raddle" \
            -o "$1/man$section/$name" "$page" || return
    done
}
