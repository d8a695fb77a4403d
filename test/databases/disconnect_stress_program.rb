# frozen_string_literal: true

# Clients leave at random moments while their request waits for a query, beside others that stay. Prints as JSON what
# went wrong.

require_relative "support/stress"
require "heddle/server"
require "net/http"
require "stringio"

LEAVING = 4
STAYING = 2
RESET = [1, 0].pack("ii") # SO_LINGER: the peer gets a reset and no FIN

APP = lambda do |_env|
  answer = nil
  Stress.ask { |query| answer = query.call }
  [200, { "content-type" => "text/plain" }, [answer.to_s]]
end

def leave
  socket = TCPSocket.new("127.0.0.1", PORT)
  socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
  sleep Stress.moment
  socket.setsockopt(:SOCKET, :LINGER, RESET) if Stress::RANDOM.rand < 0.5
  socket.close
end

def stay(client)
  answer = client.get("/")
  Stress.wrong << "a client that stayed got #{answer.code}" unless answer.code == "200"
end

configuration = Heddle::Server::Configuration.new(bind: ["127.0.0.1:0"], access_log: false, cancel_on_disconnect: :safe)
server = Heddle::Server.new(configuration, log: Heddle::Server::Log.new(output: StringIO.new, access: false))
PORT = server.open.first[/\d+\z/].to_i
serving = Thread.new { server.run(APP) }
serving.report_on_exception = true
clients = Array.new(LEAVING) { Thread.new { leave until Stress.done? } }
clients += Array.new(STAYING) do
  Thread.new { Net::HTTP.start("127.0.0.1", PORT) { |client| stay(client) until Stress.done? } }
end
clients.each(&:join)
server.stop
serving.join
puts JSON.generate(seed: Stress::SEED, cancelled: Stress.cancelled, answered: Stress.answered,
                   wrong: Stress.wrong.first(5), gone: Stress.await_end)
