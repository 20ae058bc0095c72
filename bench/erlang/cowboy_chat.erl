%% A chat on Cowboy's WebSocket handler: every text message goes to all clients, the sender
%% included.
%%
%%   erl -noinput -pa DIR -pa COWBOY/ebin -pa COWLIB/ebin -pa RANCH/ebin -run cowboy_chat main PORT
%%
%% The members are in an ETS table, as in Phoenix's registry: the process of each connection has its
%% own key. A chat message goes to each of them as an Erlang message, and each process writes its
%% own frame.
-module(cowboy_chat).
-behaviour(cowboy_websocket).
-export([main/1, init/2, websocket_init/1, websocket_handle/2, websocket_info/2, terminate/3]).

-define(MEMBERS, chat_members).

main([Port]) ->
    ?MEMBERS = ets:new(?MEMBERS, [set, public, named_table, {write_concurrency, true},
                                  {read_concurrency, true}]),
    ok = application:start(crypto),
    ok = start_without_ssl(ranch),
    ok = application:start(cowlib),
    ok = application:start(cowboy),
    Routes = cowboy_router:compile([{'_', [{'_', ?MODULE, []}]}]),
    Options = #{socket_opts => [{ip, {127, 0, 0, 1}}, {port, list_to_integer(Port)}, {backlog, 4096},
                                {nodelay, true}],
                max_connections => infinity},
    {ok, _} = cowboy:start_clear(chat, Options, #{env => #{dispatch => Routes}}),
    timer:sleep(infinity).

%% Starts an application without ssl. Ranch requires ssl, which Debian ships separately. TCP does
%% not need it.
start_without_ssl(App) ->
    File = filename:join(filename:dirname(code:which(App)), atom_to_list(App) ++ ".app"),
    {ok, [{application, App, Spec}]} = file:consult(File),
    ok = application:load(
        {application, App, lists:keystore(applications, 1, Spec, {applications, [kernel, stdlib]})}),
    application:start(App).

init(Request, State) ->
    {cowboy_websocket, Request, State, #{idle_timeout => infinity}}.

websocket_init(State) ->
    ets:insert(?MEMBERS, {self()}),
    {ok, State}.

websocket_handle({text, Text}, State) ->
    ets:foldl(fun({Member}, Message) -> Member ! Message end, {chat, Text}, ?MEMBERS),
    {ok, State};
websocket_handle(_, State) ->
    {ok, State}.

websocket_info({chat, Text}, State) ->
    {[{text, Text}], State}.

terminate(_, _, _) ->
    ets:delete(?MEMBERS, self()),
    ok.
