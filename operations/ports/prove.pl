# Listens for a moment on ports of this machine, dials those of others, and tells what arrived from where.
# In Perl, for perl-base is essential on Debian and Ubuntu; Python may be missing before set-up.
# Environment: NAME, ADDRESS of this machine; SECONDS_MOST, after which it ends in any case; and lists of lines:
#   LISTEN  PROTOCOL PORT               a port that is taken is left alone
#   DIAL    PROTOCOL PORT ADDRESS NAME
#   EXPECT  PROTOCOL PORT NAME          who is to be heard; it ends once all are, and all dials are answered
# PROTOCOL is tcp, udp, or vrrp (raw, PORT 0). Prints:
#   bound|taken PROTOCOL PORT
#   heard PROTOCOL PORT NAME SOURCE     somebody who says that he is NAME, and the address he was seen by
#   dialled PROTOCOL PORT NAME ANSWER   the name of who answers, - where it is another program, no: WHY
#   end                                 the last line
use strict;
use warnings;
use Errno qw(EINPROGRESS);
use IO::Handle;
use IO::Select;
use Socket;

$| = 1;
$SIG{PIPE} = "IGNORE";
my %KIND = (tcp => [SOCK_STREAM, 6], udp => [SOCK_DGRAM, 17], vrrp => [SOCK_RAW, 112]);
my $SAYS = qr/^kube-ha ([a-z0-9.-]{1,253})\n/;
my $ANSWERS = qr/^heard ([a-z0-9.-]{1,253})\n/;
my ($EVERY, $CONNECTS, $SPEAKS, $STAYS) = (0.4, 3, 2, 1);    # seconds
my $name = $ENV{NAME};
my @dials = map { [split / /] } lines("DIAL");
my %waits = map { join(" ", @$_[0, 1, 3]) => "no answer" } @dials;
my %expected = map { $_ => 1 } lines("EXPECT");
my (%read, %open, %out, %said);    # sockets that are read, connections that are made, where is sent from

sub lines { return grep { length } split /\n/, $ENV{$_[0]} }

sub now {    # Time::HiRes is not in perl-base of every release
    open(my $file, "<", "/proc/uptime") or die "/proc/uptime: $!\n";
    my ($seconds) = split / /, <$file>;
    return $seconds;
}

sub made {
    my ($type, $number) = @{$KIND{$_[0]}};
    socket(my $made, PF_INET, $type, $number) or die "socket: $!\n";
    $made->blocking(0);
    return $made;
}

sub place { return sockaddr_in($_[0] eq "tcp" || $_[0] eq "udp" ? $_[1] : 0, inet_aton($_[2])) }

sub heard {
    my ($key, $who, $from) = @_;
    delete $expected{"$key $who"};
    my $line = "heard $key $who " . inet_ntoa((sockaddr_in($from))[1]);
    print "$line\n" unless $said{$line}++;
}

sub dialled {
    my ($key, $answer) = @_;
    delete $waits{$key};
    print "dialled $key $answer\n";
}

sub bind_all {
    for my $key (lines("LISTEN")) {
        my ($protocol, $port) = split / /, $key;
        my $socket = made($protocol);
        setsockopt($socket, SOL_SOCKET, SO_REUSEADDR, 1) if $protocol eq "tcp";
        my $is_bound = bind($socket, place($protocol, $port, $ENV{ADDRESS}));
        $is_bound &&= listen($socket, 128) if $protocol eq "tcp";
        print $is_bound ? "bound $key\n" : "taken $key\n";
        if ($is_bound) { $read{fileno $socket} = [$socket, $protocol, $key] }
        else { delete @expected{grep { index($_, "$key ") == 0 } keys %expected} }
    }
}

sub dial_all {
    for my $dial (@dials) {
        my ($protocol, $port, $address, $who) = @$dial;
        my $key = "$protocol $port $who";
        next if !exists $waits{$key} || grep { $_->[1] eq $key } values %open;
        my $to = place($protocol, $port, $address);
        if ($protocol ne "tcp") {
            my $socket = $out{$protocol} ||= made($protocol);
            $read{fileno $socket} = [$socket, $protocol, ""];
            send($socket, "kube-ha $name\n", 0, $to) or $waits{$key} = "$!";
            next;
        }
        my $socket = made("tcp");
        if (connect($socket, $to) || $! == EINPROGRESS) { $open{fileno $socket} = [$socket, $key, now() + $CONNECTS] }
        else { $waits{$key} = "$!" }
    }
}

sub look_at_dials {
    for my $number (keys %open) {
        my ($socket, $key, $limit, $is_connected) = @{$open{$number}};
        my $select = IO::Select->new($socket);
        if (!$is_connected && $select->can_write(0)) {
            $! = unpack "i", getsockopt($socket, SOL_SOCKET, SO_ERROR);
            if ($!) { $waits{$key} = "$!"; delete $open{$number}; next }
            syswrite $socket, "kube-ha $name\n";
            $open{$number} = [$socket, $key, $limit = now() + $SPEAKS, $is_connected = 1];
        }
        my ($text, $is_read) = ("", 0);
        if ($is_connected && $select->can_read(0)) { $is_read = 1; sysread $socket, $text, 300 }
        next if !$is_read && now() < $limit;
        dialled($key, defined $text && $text =~ $SAYS ? $1 : "-") if $is_connected;
        delete $open{$number};
    }
}

sub listen_once {
    for my $socket (IO::Select->new(map { $_->[0] } values %read)->can_read(0.1)) {
        my ($own, $protocol, $key, $from) = @{$read{fileno $socket}};
        if ($protocol eq "tcp") {
            $from = accept(my $caller, $socket) or next;
            $caller->blocking(0);
            syswrite $caller, "kube-ha $name\n";
            $read{fileno $caller} = [$caller, "caller", $key, $from];
            next;
        }
        my $text = "";
        if ($protocol eq "caller") {
            sysread $socket, $text, 300;
            heard($key, $1, $from) if defined $text && $text =~ $SAYS;
            delete $read{fileno $socket};
            next;
        }
        $from = recv($socket, $text, 600, 0);
        next if !defined $from || !length $text;
        $text = substr($text, 4 * (ord($text) & 15)) if $protocol eq "vrrp";    # behind the header of IP
        if ($text =~ $SAYS && $key) { heard($key, $1, $from); send($socket, "heard $name\n", 0, $from) }
        elsif ($text =~ $ANSWERS) { answered($protocol, $1, $from) }
    }
}

sub answered {
    my ($protocol, $who, $from) = @_;
    my $port = $protocol eq "udp" ? (sockaddr_in($from))[0] : 0;
    dialled("$protocol $port $who", $who) if exists $waits{"$protocol $port $who"};
}

bind_all();
my ($end, $next, $quiet) = (now() + $ENV{SECONDS_MOST}, 0, 0);
# One that has all it waits for stays for those that are still to hear it.
while (now() < $end && (%waits || %expected || now() < $quiet)) {
    $quiet = now() + $STAYS if %waits || %expected;
    if (now() >= $next) { dial_all(); $next = now() + $EVERY }
    look_at_dials();
    listen_once();
}
dialled($_, "no: $waits{$_}") for sort keys %waits;
print "end\n";
