%% A Ranch protocol that answers every packet "ok", behind four shapes of listener.
%%
%%   erl -noinput -pa DIR -pa RANCH/ebin -run ranch_ok main SHAPE PORT
%%
%% one_sup    All acceptors hand connections to one supervisor, as in Ranch 1.
%% many_sups  Each of the 10 acceptors has a supervisor: Ranch 2's defaults, the plain row.
%% listeners  Each acceptor has a supervisor and a listening socket (SO_REUSEPORT).
%% sleep      The defaults, but a process polls for bytes and sleeps 20 ms if there are none.
-module(ranch_ok).
-behaviour(ranch_protocol).
-export([main/1, start_link/3, serve/3]).

-define(READ_MS, 5000).
-define(SLEEP_MS, 20).
-define(SO_REUSEPORT, {raw, 1, 15, <<1:32/native>>}).

main([Shape, Port]) ->
    ok = start_ranch(),
    {ok, _} = ranch:start_listener(ok, ranch_tcp, transport(Shape, list_to_integer(Port)),
                                   ?MODULE, Shape),
    timer:sleep(infinity).

%% Starts Ranch without ssl, which it requires and which Debian ships separately. TCP does not need
%% it.
start_ranch() ->
    {ok, [{application, ranch, Spec}]} =
        file:consult(filename:join(filename:dirname(code:which(ranch)), "ranch.app")),
    ok = application:load(
        {application, ranch, lists:keystore(applications, 1, Spec, {applications, [kernel, stdlib]})}),
    application:start(ranch).

transport(Shape, Port) ->
    Options = #{max_connections => infinity, socket_opts => socket_options(Port)},
    case Shape of
        "one_sup" -> Options#{num_conns_sups => 1};
        "listeners" -> Options#{num_listen_sockets => 10,
                                socket_opts => [?SO_REUSEPORT | socket_options(Port)]};
        _ -> Options
    end.

socket_options(Port) -> [{ip, {127, 0, 0, 1}}, {port, Port}, {backlog, 4096}, {nodelay, true}].

start_link(Ref, Transport, Shape) ->
    {ok, proc_lib:spawn_link(?MODULE, serve, [Ref, Transport, Shape])}.

serve(Ref, Transport, Shape) ->
    {ok, Socket} = ranch:handshake(Ref),
    case Shape of
        "sleep" -> look_and_sleep(Transport, Socket);
        _ -> wait_for_bytes(Transport, Socket)
    end.

wait_for_bytes(Transport, Socket) ->
    case Transport:recv(Socket, 0, ?READ_MS) of
        {ok, _} -> Transport:send(Socket, <<"ok">>), wait_for_bytes(Transport, Socket);
        {error, _} -> Transport:close(Socket)
    end.

look_and_sleep(Transport, Socket) ->
    case Transport:recv(Socket, 0, 0) of
        {ok, _} -> Transport:send(Socket, <<"ok">>), look_and_sleep(Transport, Socket);
        {error, timeout} -> timer:sleep(?SLEEP_MS), look_and_sleep(Transport, Socket);
        {error, _} -> Transport:close(Socket)
    end.
