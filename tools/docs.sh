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
        lowdown -s -Tman -m "section: $section" -m "title: ${name%.*}" \
            -m "source: raddle" "$page" -o "$1/man$section/$name" || return
    done
}
