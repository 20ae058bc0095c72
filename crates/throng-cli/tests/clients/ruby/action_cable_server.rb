# A server of Action Cable that says back what its channel hears. `ruby action_cable_server.rb`
# prints its port, ends with its standard input, and prints what it counted.

require "json"
require "logger"
require "action_cable"
require "puma"
require "puma/server"

$stdout.sync = true
COUNTED = Hash.new(0)
LOCK = Mutex.new

def count(what)
  LOCK.synchronize { COUNTED[what] += 1 }
end

class CountingConnection < ActionCable::Connection::Base
  def connect
    count(:connections)
  end

  def beat
    count(:pings)
    super
  end
end

class EchoChannel < ActionCable::Channel::Base
  def subscribed
    count(:subscriptions)
  end

  def speak(data)
    count(:messages)
    transmit({ said: data["text"] })
  end
end

config = ActionCable.server.config
config.cable = { "adapter" => "async" }
config.logger = Logger.new(File::NULL)
config.disable_request_forgery_protection = true
config.connection_class = -> { CountingConnection }

server = Puma::Server.new(ActionCable.server, Puma::Events.null)
listener = server.add_tcp_listener("127.0.0.1", 0)
server.run
puts listener.addr[1]
$stdin.read
puts JSON.generate(COUNTED)
exit!(0)
