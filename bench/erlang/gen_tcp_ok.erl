%% The servers of "Fast TCP sockets" (ErlangCentral), written anew from the article's description.
%%
%%   erl -noinput -pa DIR -run gen_tcp_ok main SHAPE PORT
%%
%% one            One acceptor. Each connection has a process, which waits for bytes for at most 5 s.
%% several        The same with three acceptors on one listening socket.
%% sleep          One acceptor. Each process polls for bytes, and sleeps 20 ms if there are none.
%% several_sleep  Three acceptors and the sleep: the article's best for accepting.
%% readers        100 processes share the sockets. Each polls its own in turn, every 50 ms.
%% responders     Each connection has a process that reads; 200 others send the replies.
%%
%% The answer to every packet is "ok". Socket options are those of all rows of the benchmark: a
%% backlog of 4,096, no delay, no keep-alive. The article has 128, delay and keep-alive. The 64 KiB
%% user buffer is the article's, and so is the zero send time-out of `responders`.
-module(gen_tcp_ok).
-export([main/1]).

-define(READ_MS, 5000).
-define(SLEEP_MS, 20).
-define(POLL_MS, 50).
-define(ACCEPTORS, 3).
-define(READERS, 100).
-define(RESPONDERS, 200).

main([Shape, Port]) ->
    {ok, Listener} = gen_tcp:listen(list_to_integer(Port), options(Shape)),
    start(Shape, Listener),
    timer:sleep(infinity).

start("one", L) -> acceptor(L, spawning(fun wait_for_bytes/1));
start("several", L) -> acceptors(L, fun wait_for_bytes/1);
start("sleep", L) -> acceptor(L, spawning(fun look_and_sleep/1));
start("several_sleep", L) -> acceptors(L, fun look_and_sleep/1);
start("readers", L) ->
    Readers = pool(?READERS, fun() -> reader([]) end),
    acceptor(L, fun(Socket, N) -> element(N rem ?READERS + 1, Readers) ! Socket end);
start("responders", L) ->
    Responders = pool(?RESPONDERS, fun responder/0),
    acceptor(L, fun(Socket, N) ->
        Responder = element(N rem ?RESPONDERS + 1, Responders),
        spawn(fun() -> read_for(Responder, Socket) end)
    end).

options(Shape) ->
    [binary, {active, false}, {ip, {127, 0, 0, 1}}, {reuseaddr, true}, {backlog, 4096},
     {nodelay, true}, {buffer, 65536}] ++ [{send_timeout, 0} || Shape =:= "responders"].

acceptors(L, Serve) -> [acceptor(L, spawning(Serve)) || _ <- lists:seq(1, ?ACCEPTORS)].

%% Accepts connections, and calls `Hand` with each socket and its number.
acceptor(L, Hand) -> spawn(fun() -> accept(L, Hand, 0) end).

accept(L, Hand, N) ->
    case gen_tcp:accept(L) of
        {ok, Socket} -> Hand(Socket, N), accept(L, Hand, N + 1);
        {error, closed} -> closed;
        {error, _} -> accept(L, Hand, N)
    end.

spawning(Serve) -> fun(Socket, _) -> spawn(fun() -> Serve(Socket) end) end.

pool(Size, Run) -> list_to_tuple([spawn(Run) || _ <- lists:seq(1, Size)]).

wait_for_bytes(Socket) ->
    case gen_tcp:recv(Socket, 0, ?READ_MS) of
        {ok, _} -> gen_tcp:send(Socket, <<"ok">>), wait_for_bytes(Socket);
        {error, _} -> gen_tcp:close(Socket)
    end.

look_and_sleep(Socket) ->
    case look(Socket) of
        answered -> look_and_sleep(Socket);
        nothing -> timer:sleep(?SLEEP_MS), look_and_sleep(Socket);
        ended -> ended
    end.

look(Socket) ->
    case gen_tcp:recv(Socket, 0, 0) of
        {ok, _} -> gen_tcp:send(Socket, <<"ok">>), answered;
        {error, timeout} -> nothing;
        {error, _} -> gen_tcp:close(Socket), ended
    end.

reader(Sockets) ->
    Open = [Socket || Socket <- Sockets, look(Socket) =/= ended],
    receive
        Socket -> reader([Socket | Open])
    after ?POLL_MS -> reader(Open)
    end.

read_for(Responder, Socket) ->
    case gen_tcp:recv(Socket, 0, ?READ_MS) of
        {ok, _} -> Responder ! Socket, read_for(Responder, Socket);
        {error, _} -> gen_tcp:close(Socket)
    end.

responder() ->
    receive
        Socket -> gen_tcp:send(Socket, <<"ok">>), responder()
    end.
