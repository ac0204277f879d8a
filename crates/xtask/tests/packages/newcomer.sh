# What somebody does who has never seen acpd: with a service manager, a reboot, and all of it taken out.
step logged in
useradd --create-home --groups systemd-journal eve
runtime=/run/user/$(id -u eve)
as() { su "$1" --shell /bin/sh --command "cd && export XDG_RUNTIME_DIR=$runtime && $2"; }
logs() { journalctl --sync || true; journalctl --quiet --no-pager --output=short-monotonic; cat /journald /manager; }
# The service manager keeps what it starts in groups of its own. They are below one that is the person's, in whose path
# journald looks for who writes to it.
own="$GROUP/user.slice/user-$(id -u eve).slice/user@$(id -u eve).service"
groups() { for group in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
    test ! -f "$group/cgroup.procs" || echo "$group/$own"; done; }
# Some program that has nothing to do with acpd may not start in such a small system.
is_up() { as eve 'systemctl --user is-system-running --wait' > /state || grep -x degraded /state; }
log_in() {
    mkdir -p "$runtime" && chown eve "$runtime" && chmod 700 "$runtime"
    sh -c 'for group; do mkdir -p "$group" && chown -R eve "$group" && echo $$ > "$group/cgroup.procs"; done
        exec su eve --shell /bin/sh --command "cd && export SYSTEMD_LOG_TARGET=journal XDG_RUNTIME_DIR='"$runtime"' &&
            exec /usr/lib/systemd/systemd --user"' \
        login $(groups) > /manager 2>&1 &
    comes 'a service manager' is_up
    grep -q -x running /state || as eve 'systemctl --user --failed --no-pager --plain'
}
# Processes of hers that have not ended yet. What has, and waits for its parent to look, does not count.
has_ended() { ! ps -u eve -o stat=,args= | grep -v '^Z'; }
# Every process of a person ends at once, and what is kept in memory is gone.
reboot() { as eve 'kill -KILL -1' || true; comes 'the end of all processes' has_ended; rm -r "$runtime"; }

# The manager and the daemon write their logs where journald listens.
mkdir -p /run/systemd/system /run/systemd/journal /var/log/journal
touch /run/systemd/journal/flushed
systemd-machine-id-setup > /dev/null 2>&1
/usr/lib/systemd/systemd-journald > /journald 2>&1 &
comes 'a place for logs' test -S /run/systemd/journal/stdout
log_in

step installed
dpkg --install /one.deb > /dev/null
files() { (cd /home/eve && find . -not -type d | sort); }
files > /before
tells eve 'acpctl doctor'
tells eve 'acpctl service install'
says 'it starts at login or with its first client'
tells eve 'acpctl service status'
tells eve 'acpctl doctor'
says 'loginctl enable-linger'
if grep -E '^(warning|problem)' /told; then exit 1; fi

step used
tells eve 'acpctl run -s first "say #one"'
says 'You said: say #one | history=0 tags=one'
says 'a built-in script, not a model'
tells eve 'acpctl agent ls --all'
says demo
test -s "/usr/share/doc/$PACKAGE/docs/editors.md"
printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}' > /home/eve/editor
tells eve 'acpctl acp < editor; rm editor'
says '"protocolVersion":1'
daemon=$(as eve 'systemctl --user show acpd.service --property=MainPID --value')
test "$daemon" -gt 1
journalctl --sync
tells eve 'acpctl service logs'
says "acpd[$daemon]"

step rebooted
as eve 'acpctl run -s first -N --detach "[slow 600]"' > /dev/null
is_answering() { as eve 'acpctl session log first --last' | grep '^ *tick '; }
comes 'the begin of an answer' is_answering
reboot
log_in
tells eve 'acpctl run -s first -N "say #two"'
says 'You said: say #two | history=2 tags=one,two'
tells eve 'acpctl --no-spawn daemon status'
tells eve 'acpctl service status'

step removed
tells eve 'acpctl service uninstall --purge --yes'
dpkg --purge "$PACKAGE" > /dev/null
files > /after
diff /before /after
left=$(find / -xdev -newer /before \( -name '*acpd*' -o -name '*acpctl*' -o -name "*$PACKAGE*" \) \
    -not -path '/proc/*' -not -path '/sys/*')
test -z "$left" || { echo "left: $left"; exit 1; }
nothing_runs() { ! ps -u eve -o args= | grep acp; }
comes 'the end of all that acpd started' nothing_runs
reboot
step done
