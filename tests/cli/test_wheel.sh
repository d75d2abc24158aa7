#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_wheel.sh SOURCE: scripts/test-wheel, with programs that do nothing in the place of Python and of what a wheel
# installs: a step that fails is told, and nothing but its own folders is removed.
set -u
folder=$(mktemp -d) || exit 3
trap 'rm -rf "$folder"' EXIT
failures=0

check() {
    echo "$([ "$2" -eq 0 ] && echo 'ok   ' || echo 'FAIL ') $1"
    [ "$2" -eq 0 ] || failures=$((failures + 1))
}

# Each program of the environment fails if its words have $FAILS, which `env -i` does not hand on.
mkdir "$folder/bin" "$folder/wheel"
cat >"$folder/bin/python3" <<'END'
#!/bin/sh
case $* in
*'-m venv '*)
    for place; do :; done
    mkdir -p "$place/bin"
    for name in pip python attnum; do
        printf '#!/bin/sh\necho "%s $*"\ncase $* in *%s*) exit 1 ;; esac\n' "$name" "${FAILS:-nothing}" >"$place/bin/$name"
        chmod +x "$place/bin/$name"
    done
    ;;
esac
END
chmod +x "$folder/bin/python3"
wheel() {
    PATH=$folder/bin:$PATH FAILS=${1:-} "$source/scripts/test-wheel" "$folder/wheel" >"$folder/log" 2>&1
}

source=$1
for name in tests docs venv tools; do
    mkdir "$folder/wheel/$name"
    echo mine >"$folder/wheel/$name/mine"
done
wheel
check 'nothing fails' $?
[ "$(cat "$folder"/wheel/*/mine | wc -l)" -eq 4 ]
check 'what others have in the folder stays' $?
for step in --version photos check_my_kernel unittest '--outdir'; do
    wheel "$step"
    [ $? -eq 1 ]
    check "$step: its failure is one" $?
done
echo "$failures checks failed"
[ "$failures" -eq 0 ]
