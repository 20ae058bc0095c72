% "Fast TCP sockets": ever more connections, one request on each.
[
 {make_install, [{git, "https://github.com/example/server-examples.git"},
                 {branch, "master"},
                 {dir, "tcp_worker"}]},
 {pool, [{size, {var, "workers", 20000000}},
         {worker_type, tcp_worker},
         {worker_start, {pow, 2, 200, {3, sec}}}], % 44.4 more each second
  [
   {connect, "service-host", 4444},
   {request},
   {wait_finish}
  ]}
].
