# What both scripts begin with. They run as root in a clean Debian, and commands of a person as that person, in whose home
# nothing is at first. A failure tells the step, what the last command said, and what the logs have of it.
set -eu
now='nothing yet'
step() { now=$*; echo "== $*"; }

# tells PERSON COMMAND: runs it, and keeps what it says for `says`.
tells() {
    echo "$ $2"
    as "$1" "$2" > /told 2>&1 || { code=$?; cat /told; echo "it ends with $code"; exit 1; }
    cat /told
}
says() { grep -F -q -- "$1" /told || { echo "not said: $1"; exit 1; }; }

# comes WHAT COMMAND…: tries that until it succeeds, for a minute.
comes() {
    what=$1
    shift
    for _ in $(seq 600); do ! "$@" > /tried 2>&1 || return 0; sleep 0.1; done
    echo "this never came: $what"
    cat /tried
    exit 1
}

ended() {
    code=$?
    test "$code" -ne 0 || exit 0
    echo "== FAILED in the step: $now"
    logs || true
    ps -eo user,pid,ppid,stat,args || true
    exit "$code"
}
trap ended EXIT
