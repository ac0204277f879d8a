# Installed, used, upgraded under a turn that goes on, and purged.
as() { su "$1" --shell /bin/sh --command "cd && $2"; }
logs() { tail -n 50 /home/ada/.local/state/acpd/log/acpd.log; }
daemon_pid() { as ada 'acpctl daemon status --json' | tr ',{' '\n\n' | sed -n 's/ *"pid": *\([0-9]*\).*/\1/p' | head -n 1; }

touch /begun
step installed
dpkg --install /one.deb
dpkg --verify "$PACKAGE"
grep -q '^ExecStart=/usr/bin/acpd run$' /usr/lib/systemd/user/acpd.service
for page in acpd acpctl acpctl-run acpctl-mcp acpctl-web acpctl-web-pair; do test -s "/usr/share/man/man1/$page.1.gz"; done

step used
useradd --create-home ada
as ada 'mkdir -p .config/acpd && printf "[daemon]\nnotify = false\n" > .config/acpd/config.toml'
tells ada 'acpctl run -a demo -s fix -N "say #one"'
says 'You said: say #one | history=0 tags=one'
# Its answer is not over before somebody has allowed what it asks for.
as ada 'acpctl run -s fix --detach "[slow 20] [ask] [slow 20]"' > /dev/null
before=$(daemon_pid)

step upgraded in the middle of an answer
dpkg --install /two.deb
test "$(readlink "/proc/$before/exe")" = '/usr/bin/acpd (deleted)'
tells ada 'acpctl run -a demo -s other -N "begun by the old daemon"'
says 'You said: begun by the old daemon'
if as ada 'acpctl wait fix --timeout 1s' > /told 2>&1; then cat /told; echo 'the answer was over too early'; exit 1; fi
tells ada 'acpctl daemon restart'
test "$(readlink "/proc/$(daemon_pid)/exe")" = /usr/bin/acpd
comes 'a question' as ada 'acpctl allow fix'
tells ada 'acpctl wait fix'
as ada 'acpctl session log fix --last --answer' > /told
test "$(grep -c '^tick ' /told)" -eq 40 || { cat /told; exit 1; }
tells ada 'acpctl run -s fix -N "say #two"'
says 'You said: say #two | history=2 tags=one,two'

step purged
tells ada 'acpctl daemon stop'
dpkg --purge "$PACKAGE"
left=$(find / -xdev -newer /begun \( -name '*acpd*' -o -name '*acpctl*' -o -name "*$PACKAGE*" \) \
    -not -path '/proc/*' -not -path '/sys/*' -not -path '/home/*' -not -path '/tmp/acpd-*')
test -z "$left" || { echo "left: $left"; exit 1; }
step done
