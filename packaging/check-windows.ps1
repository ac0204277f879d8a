<#
.SYNOPSIS
Checks on Windows what the tests of acpd cannot show under Wine. One line per check: PASS, FAIL or SKIP.

.DESCRIPTION
Give it the folder with acpd.exe and acpctl.exe (cargo build --release --bins --all-features). It works in a home of its own
below the temporary directory, which it removes at the end, and touches no acpd of yours. It needs Windows 10 or later and
Windows PowerShell 5.1 or later; no rights of an administrator but with -WithAnotherUser.

The exit code is the number of checks that failed. docs/platforms.md says what each of them stands for.

.PARAMETER Programs
The folder with the programs.

.PARAMETER WithAnotherUser
Makes a local user with a random password for one check, and removes it. Needs an administrator's PowerShell.

.PARAMETER Keep
Leaves the home with its logs, and says where it is.

.EXAMPLE
powershell -ExecutionPolicy Bypass -File packaging\check-windows.ps1 target\release
#>
[CmdletBinding()]
param(
    [Parameter(Mandatory = $true, Position = 0)] [string] $Programs,
    [switch] $WithAnotherUser,
    [switch] $Keep
)

Set-StrictMode -Version 2
$ErrorActionPreference = 'Stop'
$Programs = (Resolve-Path $Programs).Path
$Acpd = Join-Path $Programs 'acpd.exe'
$Acpctl = Join-Path $Programs 'acpctl.exe'
$Wait = 60
$script:Failed = 0

# ---- what PowerShell has no words for

$Kit = @'
using System;
using System.ComponentModel;
using System.Runtime.InteropServices;
using System.Text;

public static class AcpdCheck {
    [StructLayout(LayoutKind.Sequential)]
    struct Basic {
        public long PerProcess, PerJob; public uint Flags; public UIntPtr Min, Max;
        public uint Active; public UIntPtr Affinity; public uint Priority, Scheduling;
    }
    [StructLayout(LayoutKind.Sequential)]
    struct Counters { public ulong A, B, C, D, E, F; }
    [StructLayout(LayoutKind.Sequential)]
    struct Extended { public Basic Limits; public Counters Io; public UIntPtr A, B, C, D; }
    [StructLayout(LayoutKind.Sequential, CharSet = CharSet.Unicode)]
    struct StartupInfo {
        public int Size; public string Reserved, Desktop, Title;
        public int X, Y, Width, Height, Columns, Rows, Fill, Flags;
        public short Show, Reserved2; public IntPtr Reserved3, In, Out, Err;
    }
    [StructLayout(LayoutKind.Sequential)]
    struct ProcessInformation { public IntPtr Process, Thread; public int Pid, Tid; }

    [DllImport("kernel32", SetLastError = true)] static extern IntPtr CreateJobObjectW(IntPtr a, IntPtr n);
    [DllImport("kernel32", SetLastError = true)] static extern bool SetInformationJobObject(IntPtr j, int c, ref Extended i, int n);
    [DllImport("kernel32", SetLastError = true)] static extern bool AssignProcessToJobObject(IntPtr j, IntPtr p);
    [DllImport("kernel32", SetLastError = true)] static extern bool CloseHandle(IntPtr h);
    [DllImport("kernel32", SetLastError = true, CharSet = CharSet.Unicode)]
    static extern bool CreateProcessW(string app, StringBuilder line, IntPtr pa, IntPtr ta, bool inherit, uint flags,
        IntPtr env, string dir, ref StartupInfo info, out ProcessInformation made);
    [DllImport("kernel32")] static extern uint ResumeThread(IntPtr t);
    [DllImport("kernel32")] static extern uint WaitForSingleObject(IntPtr h, uint ms);
    [DllImport("kernel32")] static extern bool FreeConsole();
    [DllImport("kernel32", SetLastError = true)] static extern bool AttachConsole(int pid);
    [DllImport("kernel32")] static extern bool SetConsoleCtrlHandler(IntPtr h, bool add);
    [DllImport("kernel32", SetLastError = true)] static extern bool GenerateConsoleCtrlEvent(uint e, uint group);
    [DllImport("kernel32", SetLastError = true, CharSet = CharSet.Unicode)]
    static extern IntPtr CreateFileW(string n, uint access, uint share, IntPtr sa, uint how, uint flags, IntPtr t);
    [DllImport("advapi32", CharSet = CharSet.Unicode)]
    static extern uint GetSecurityInfo(IntPtr h, int kind, uint what, out IntPtr o, out IntPtr g, out IntPtr d, out IntPtr s, out IntPtr sd);
    [DllImport("advapi32", SetLastError = true, CharSet = CharSet.Unicode)]
    static extern bool ConvertSecurityDescriptorToStringSecurityDescriptorW(IntPtr sd, uint rev, uint what, out IntPtr text, out uint n);

    static void Check(bool worked) { if (!worked) throw new Win32Exception(); }

    // A Job that ends all that is in it when it is closed, and that nobody may leave.
    public static IntPtr NewJob() {
        IntPtr job = CreateJobObjectW(IntPtr.Zero, IntPtr.Zero);
        Check(job != IntPtr.Zero);
        Extended limits = new Extended();
        limits.Limits.Flags = 0x2000;
        Check(SetInformationJobObject(job, 9, ref limits, Marshal.SizeOf(limits)));
        return job;
    }

    public static void Close(IntPtr handle) { CloseHandle(handle); }

    // Starts a command, in a Job if one is given, with a console of its own; returns its pid.
    public static int Start(string line, string dir, IntPtr job, bool hidden) {
        StartupInfo info = new StartupInfo();
        info.Size = Marshal.SizeOf(info);
        info.Flags = 1;
        info.Show = (short)(hidden ? 0 : 7);
        ProcessInformation made;
        Check(CreateProcessW(null, new StringBuilder(line), IntPtr.Zero, IntPtr.Zero, false, 0x14, IntPtr.Zero, dir, ref info, out made));
        if (job != IntPtr.Zero) Check(AssignProcessToJobObject(job, made.Process));
        ResumeThread(made.Thread);
        CloseHandle(made.Thread);
        CloseHandle(made.Process);
        return made.Pid;
    }

    // Ctrl-C in the console of that process, for all that is in it. Whoever does this has lost its own console.
    public static void CtrlC(int pid) {
        FreeConsole();
        Check(AttachConsole(pid));
        SetConsoleCtrlHandler(IntPtr.Zero, true);
        Check(GenerateConsoleCtrlEvent(0, 0));
        System.Threading.Thread.Sleep(500);
    }

    // The owner and the access list of a pipe, as text.
    public static string AccessOf(string pipe) {
        IntPtr file = CreateFileW(pipe, 0x20000, 0, IntPtr.Zero, 3, 0x110000, IntPtr.Zero);
        Check(file != new IntPtr(-1));
        try {
            IntPtr o, g, d, s, sd, text; uint n;
            uint error = GetSecurityInfo(file, 6, 5, out o, out g, out d, out s, out sd);
            if (error != 0) throw new Win32Exception((int)error);
            Check(ConvertSecurityDescriptorToStringSecurityDescriptorW(sd, 1, 5, out text, out n));
            return Marshal.PtrToStringUni(text);
        } finally { CloseHandle(file); }
    }
}
'@
Add-Type -TypeDefinition $Kit

# ---- telling

function Tell([string] $verdict, [string] $what, [string] $why) {
    $line = '{0}  {1}' -f $verdict, $what
    if ($why) { $line += ': ' + ($why -replace '\s+', ' ') }
    [Console]::Out.WriteLine($line)
}

function Check([string] $what, [scriptblock] $body) {
    try {
        $skipped = & $body | Where-Object { $_ -is [string] -and $_.StartsWith('skip: ') } | Select-Object -First 1
        if ($skipped) { Tell 'SKIP' $what $skipped.Substring(6) } else { Tell 'PASS' $what '' }
    } catch {
        $script:Failed++
        Tell 'FAIL' $what $_.Exception.Message
    }
}

function Assert([bool] $holds, [string] $otherwise) {
    if (-not $holds) { throw $otherwise }
}

function Until([string] $what, [scriptblock] $look) {
    $end = (Get-Date).AddSeconds($Wait)
    while ((Get-Date) -lt $end) {
        $found = & $look
        if ($found) { return $found }
        Start-Sleep -Milliseconds 100
    }
    throw "waited $Wait s for $what"
}

# ---- acpd

# What a command writes, as text, and its exit code.
function Run-Program([string] $program, [string[]] $words, [string] $in = $Work) {
    $start = New-Object System.Diagnostics.ProcessStartInfo $program
    $start.Arguments = ($words | ForEach-Object { '"' + ($_ -replace '"', '\"') + '"' }) -join ' '
    $start.WorkingDirectory = $in
    $start.UseShellExecute = $false
    $start.CreateNoWindow = $true
    $start.RedirectStandardInput = $true
    $start.RedirectStandardOutput = $true
    $start.RedirectStandardError = $true
    $start.StandardOutputEncoding = [Text.Encoding]::UTF8
    $start.StandardErrorEncoding = [Text.Encoding]::UTF8
    $process = [System.Diagnostics.Process]::Start($start)
    $process.StandardInput.Close()
    $said = $process.StandardError.ReadToEndAsync()
    $out = $process.StandardOutput.ReadToEndAsync()
    if (-not $process.WaitForExit($Wait * 1000)) { $process.Kill(); throw "$program $words did not end in $Wait s" }
    $code = $process.ExitCode
    New-Object psobject -Property @{ Out = $out.Result; Err = $said.Result; Code = $code }
}

function Acpctl {
    $ran = Run-Program $Acpctl ([string[]] $args)
    if ($ran.Code -ne 0) { throw "acpctl $args ended with $($ran.Code): $($ran.Err)" }
    $ran.Out
}

function Daemon { (Acpctl 'daemon' 'status' '--json') | ConvertFrom-Json }
function Agent([string] $name) { ((Acpctl 'ps' '--json') | ConvertFrom-Json).agents | Where-Object { $_.name -eq $name } }
function Is-Alive([int] $id) { [bool] (Get-Process -Id $id -ErrorAction SilentlyContinue) }
function Below([int] $id) {
    $all = Get-CimInstance Win32_Process
    $found = @(); $next = @($id)
    while ($next) {
        $next = @($all | Where-Object { $next -contains $_.ParentProcessId } | ForEach-Object { [int] $_.ProcessId })
        $found += $next
    }
    $found
}
function Stop-Daemon {
    if ((Run-Program $Acpctl @('--no-spawn', 'daemon', 'status')).Code -eq 0) { Acpctl 'daemon' 'stop' | Out-Null }
}
function Set-Config([string] $more) {
    $text = "default_agent = `"demo`"`n[daemon]`n" + $more
    [IO.File]::WriteAllText((Join-Path $env:ACPD_CONFIG_DIR 'config.toml'), $text)
}
function Toml([string] $text) { "'" + $text + "'" }

foreach ($program in $Acpd, $Acpctl) {
    if (-not (Test-Path -LiteralPath $program)) { throw "there is no $program" }
}
$Base = Join-Path ([IO.Path]::GetTempPath()) ('acpd-check-' + [Guid]::NewGuid().ToString('N').Substring(0, 8))
$Work = Join-Path $Base 'work'
$before = @{}
foreach ($name in 'RUNTIME', 'STATE', 'CONFIG') {
    $before[$name] = [Environment]::GetEnvironmentVariable("ACPD_${name}_DIR")
    [Environment]::SetEnvironmentVariable("ACPD_${name}_DIR", (Join-Path $Base $name.ToLower()))
}
$exe = $env:ACPD_EXE
$env:ACPD_EXE = $Acpd
New-Item -ItemType Directory -Force -Path $Work, $env:ACPD_CONFIG_DIR | Out-Null
Set-Config ''
$me = [Security.Principal.WindowsIdentity]::GetCurrent().User.Value

try {
    Tell 'ON  ' ([Environment]::OSVersion.VersionString) ("PowerShell $($PSVersionTable.PSVersion), " + (Run-Program $Acpd @('--version')).Out.Trim())

    Check 'a prompt is answered by an agent behind a shim' {
        $answer = Acpctl 'run' '-n' '--session' 'main' 'hello'
        Assert ($answer -match 'You said: hello') "it answered $answer"
    }

    Check 'the pipe is the user''s own, and nobody else is on its list' {
        $access = [AcpdCheck]::AccessOf((Daemon).socket)
        $ours = '^O:' + $me + 'D:P\(A;;[^;]*;;;' + $me + '\)$'
        # This user may have a name of its own in such a text.
        $list = ($access -split 'D:P', 2)[-1]
        Assert (($access -match $ours) -or (([regex]::Matches($list, '\(').Count -eq 1) -and $access.StartsWith("O:$me"))) $access
    }

    Check 'a second daemon is refused' {
        $second = Run-Program $Acpd @('run')
        Assert ($second.Code -ne 0) 'it ran'
        Assert ($second.Err -match 'locked') $second.Err
    }

    Check 'whoever has the name of the pipe already is not taken for the daemon' {
        $socket = (Daemon).socket
        Stop-Daemon
        $name = $socket -replace '^\\\\\.\\pipe\\', ''
        $squatter = New-Object IO.Pipes.NamedPipeServerStream $name, 'InOut', 2
        try {
            $run = Run-Program $Acpd @('run')
            Assert ($run.Code -ne 0) 'the daemon ran'
        } finally { $squatter.Dispose() }
        Acpctl 'daemon' 'start' | Out-Null
    }

    Check 'the connection of another user is refused' {
        if (-not $WithAnotherUser) { return 'skip: -WithAnotherUser was not given' }
        $name = 'acpd' + [Guid]::NewGuid().ToString('N').Substring(0, 8)
        $password = ConvertTo-SecureString ('aA1!' + [Guid]::NewGuid().ToString()) -AsPlainText -Force
        New-LocalUser -Name $name -Password $password -AccountNeverExpires | Out-Null
        try {
            $socket = (Daemon).socket
            $try = "try { [IO.File]::Open('$socket', 'Open', 'ReadWrite').Dispose(); exit 7 } catch { if (`$_.Exception.InnerException -is [UnauthorizedAccessException]) { exit 8 } exit 9 }"
            $encoded = [Convert]::ToBase64String([Text.Encoding]::Unicode.GetBytes($try))
            $who = New-Object Management.Automation.PSCredential "$env:COMPUTERNAME\$name", $password
            $other = Start-Process powershell -Credential $who -WorkingDirectory $env:SystemRoot -WindowStyle Hidden -PassThru -Wait `
                -ArgumentList '-NoProfile', '-EncodedCommand', $encoded
            Assert ($other.ExitCode -ne 7) 'it was let in'
            Assert ($other.ExitCode -in 8, 9) "the other user's PowerShell ended with $($other.ExitCode)"
        } finally { Remove-LocalUser -Name $name }
    }

    Check 'the daemon and its agents outlive a Job that nobody may leave' {
        Stop-Daemon
        $job = [AcpdCheck]::NewJob()
        try {
            $client = [AcpdCheck]::Start(('"{0}" run -n --session job "[hang-cancel]"' -f $Acpctl), $Work, $job, $true)
            $agent = Until 'the agent' { (Run-Program $Acpctl @('--no-spawn', 'ps', '--json')).Out | ForEach-Object { if ($_) { ($_ | ConvertFrom-Json).agents | Where-Object { $_.name -eq 'demo' -and $_.state -eq 'ready' } } } }
            $daemon = (Daemon).pid
        } finally { [AcpdCheck]::Close($job) }
        Until 'the end of the client' { -not (Is-Alive $client) } | Out-Null
        Assert (Is-Alive $daemon) 'the daemon ended with the Job'
        Assert (Is-Alive $agent.pid) 'the agent ended with the Job'
        Assert ((Daemon).pid -eq $daemon) 'it is another daemon'
        Acpctl 'cancel' 'job' | Out-Null
    }

    Check 'the daemon outlives the terminal that it was started from' {
        Stop-Daemon
        $terminal = [AcpdCheck]::Start(('cmd.exe /d /k ""{0}" daemon start"' -f $Acpctl), $Work, [IntPtr]::Zero, $false)
        $daemon = Until 'the daemon' {
            $now = Run-Program $Acpctl @('--no-spawn', 'daemon', 'status', '--json')
            if ($now.Code -eq 0) { ($now.Out | ConvertFrom-Json).pid }
        }
        # The window closes with what shows it.
        @(Below $terminal) + $terminal | Where-Object { $_ -ne $daemon } | ForEach-Object { Stop-Process -Id $_ -Force -ErrorAction SilentlyContinue }
        Start-Sleep -Seconds 1
        Assert ((Daemon).pid -eq $daemon) 'it is another daemon'
    }

    Check 'Ctrl-C ends the command in its console, and neither the daemon nor the agent' {
        Acpctl 'run' '-n' '--session' 'main' 'hello' | Out-Null
        $daemon = (Daemon).pid; $agent = (Agent 'demo').pid
        $client = [AcpdCheck]::Start(('"{0}" run -n --session main "[hang-cancel]"' -f $Acpctl), $Work, [IntPtr]::Zero, $true)
        Until 'the turn' { (Acpctl 'session' 'show' 'main') -match 'turn\s+working' } | Out-Null
        $file = Join-Path $Base 'kit.cs'
        [IO.File]::WriteAllText($file, $Kit)
        $press = Start-Process powershell -WindowStyle Hidden -PassThru -Wait -ArgumentList '-NoProfile', '-Command', `
            "Add-Type -Path '$file'; [AcpdCheck]::CtrlC($client)"
        Assert ($press.ExitCode -eq 0) 'Ctrl-C could not be pressed'
        Until 'the end of the command' { -not (Is-Alive $client) } | Out-Null
        Assert ((Daemon).pid -eq $daemon) 'the daemon ended'
        Assert ((Agent 'demo').pid -eq $agent) 'the agent ended'
    }

    Check 'no daemon, shim or agent has a window' {
        $ours = @(Get-CimInstance Win32_Process | Where-Object { $_.ExecutablePath -eq $Acpd } | ForEach-Object { [int] $_.ProcessId })
        Assert ($ours.Count -ge 2) 'there are none'
        $shown = $ours | Where-Object { (Get-Process -Id $_).MainWindowHandle -ne [IntPtr]::Zero }
        Assert (-not $shown) "these have one: $shown"
    }

    Check 'a restart is another process and keeps the agent' {
        Acpctl 'run' '-n' '--session' 'main' 'hello' | Out-Null
        $daemon = (Daemon).pid; $agent = (Agent 'demo').pid
        Acpctl 'daemon' 'restart' | Out-Null
        Assert ((Daemon).pid -ne $daemon) 'it is the same process'
        Assert ((Agent 'demo').pid -eq $agent) 'the agent is another one'
        Assert ((Acpctl 'run' '-n' '--session' 'main' 'again') -match 'again') 'it does not answer'
    }

    Check 'an agent is killed with all that it has started' {
        $inner = "Start-Process -WindowStyle Hidden ping -ArgumentList '-n','600','127.0.0.1'; & '$Acpd' scripted-agent"
        Set-Config ("[agents.tree]`ncommand = ['powershell', '-NoProfile', '-Command', " + '"' + ($inner -replace '\\', '\\') + '"' + "]`n")
        Acpctl 'daemon' 'restart' | Out-Null
        $ran = Run-Program $Acpctl @('agent', 'start', 'tree')
        $top = Until 'the agent' { (Agent 'tree').pid }
        $tree = Until 'what it has started' { $all = @(Below $top); if ($all.Count -ge 1) { , $all } }
        Run-Program $Acpctl @('agent', 'stop', 'tree') | Out-Null
        Until 'the end of the tree' { -not (@($tree) + $top | Where-Object { Is-Alive $_ }) } | Out-Null
    }

    Check 'a command script of npm is started as node and its file' {
        $node = Get-Command node.exe -ErrorAction SilentlyContinue
        if (-not $node) { return 'skip: there is no node.exe' }
        $bin = Join-Path $Base 'npm'
        New-Item -ItemType Directory -Force -Path $bin | Out-Null
        $script = @('@ECHO off', 'GOTO start', ':find_dp0', 'SET dp0=%~dp0', 'EXIT /b', ':start', 'SETLOCAL', 'CALL :find_dp0', '',
            'IF EXIST "%dp0%\node.exe" (', '  SET "_prog=%dp0%\node.exe"', ') ELSE (', '  SET "_prog=node"',
            '  SET PATHEXT=%PATHEXT:;.JS;=;%', ')', '',
            'endLocal & goto #_undefined_# 2>NUL || title %COMSPEC% & "%_prog%"  "%dp0%\cli.js" %*', '') -join "`r`n"
        [IO.File]::WriteAllText((Join-Path $bin 'npms.cmd'), $script)
        [IO.File]::WriteAllText((Join-Path $bin 'cli.js'), "require('fs').writeFileSync(__dirname + '/args', process.argv.slice(2).join('|')); process.exit(3)")
        Set-Config ("[agents.npms]`ncommand = [" + (Toml (Join-Path $bin 'npms.cmd')) + ", 'a b%PATH%^&']`n")
        Acpctl 'daemon' 'restart' | Out-Null
        Run-Program $Acpctl @('agent', 'start', 'npms') | Out-Null
        $told = Until 'the script' { $file = Join-Path $bin 'args'; if (Test-Path $file) { Get-Content -Raw $file } }
        Assert ($told -eq 'a b%PATH%^&') "it got $told"
        Run-Program $Acpctl @('agent', 'stop', 'npms') | Out-Null
    }

    Check 'text is UTF-8 whatever the code page is' {
        # In code points, so that this file has none of them itself.
        $text = -join ([char] 0xe4, [char] 0x20ac, [char] 0x6f22, [char]::ConvertFromUtf32(0x1f600))
        $answer = Acpctl 'run' '-n' '--session' 'text' $text
        Assert ($answer.Contains($text)) "it answered $answer"
        $file = Join-Path $Base 'text.out'
        $line = 'chcp 437 >nul & "{0}" session log text > "{1}"' -f $Acpctl, $file
        $cmd = Start-Process cmd -ArgumentList '/d', '/s', '/c', ('"' + $line + '"') -WorkingDirectory $Work -WindowStyle Hidden -PassThru -Wait
        Assert ($cmd.ExitCode -eq 0) "cmd ended with $($cmd.ExitCode)"
        Assert ([IO.File]::ReadAllText($file, (New-Object Text.UTF8Encoding $false, $true)).Contains($text)) 'it is not in the file'
    }

    Check 'a state directory may have a path of any length' {
        Stop-Daemon
        $state = $env:ACPD_STATE_DIR
        $env:ACPD_STATE_DIR = Join-Path $Base (((1..5) | ForEach-Object { "$_" + ('d' * 60) }) -join '\')
        try {
            $answer = Acpctl 'run' '-n' '--session' 'long' 'hello'
            Assert ($answer -match 'You said: hello') "it answered $answer"
            Stop-Daemon
        } finally { $env:ACPD_STATE_DIR = $state }
    }
} finally {
    try { Stop-Daemon } catch { Tell 'FAIL' 'the daemon is stopped' $_.Exception.Message; $script:Failed++ }
    foreach ($name in $before.Keys) { [Environment]::SetEnvironmentVariable("ACPD_${name}_DIR", $before[$name]) }
    $env:ACPD_EXE = $exe
    if ($Keep) { Tell 'KEPT' $Base '' } else { cmd /d /c rmdir /s /q "\\?\$Base" }
}
exit $script:Failed
