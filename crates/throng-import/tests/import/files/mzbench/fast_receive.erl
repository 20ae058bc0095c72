% "Fast TCP sockets": 25,000 connections, and ever more requests on each.
[
 {defaults, [{"max", 10}, {"time", 20}]},
 {pool, [{size, 25000},
         {worker_type, tcp_worker},
         {worker_start, {linear, {500, rps}}}],
  [
   {connect_sync, "service-host", 4444},
   % From 25,000 to 250,000 requests a second in all.
   {loop, [{time, {{numvar, "time"}, min}},
           {rate, {ramp, linear, {1, rps}, {{numvar, "max"}, rps}}}],
    [{request_sync}]}
  ]}
].
