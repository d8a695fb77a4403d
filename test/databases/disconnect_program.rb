# frozen_string_literal: true

# Clients leave while their request waits for a query of half a minute: over HTTP/1.1 one after the other, over HTTP/2
# by the reset of a stream. Prints as JSON, for each way: seconds until the next request was answered, its answer, and
# seconds until the server of the database ran the abandoned query no more.

require_relative "support/access"
require "heddle/server"
require_relative "../support/h2_client"
require "json"
require "net/http"
require "stringio"

APP = lambda do |env|
  way = env["PATH_INFO"].delete_prefix("/slow/")
  sql = env["PATH_INFO"] == "/" ? "SELECT 42" : "SELECT #{SLEEP}(30) AS mark_#{way}"
  [200, { "content-type" => "text/plain" }, [ACCESS.value(sql).to_s]]
end

def over_http1(path)
  socket = TCPSocket.new("127.0.0.1", PORT)
  socket.write("GET #{path} HTTP/1.1\r\nhost: a\r\n\r\n")
  yield
  socket.close
end

def over_http2(path)
  client = H2Client.new(TCPSocket.new("127.0.0.1", PORT))
  client.send_preface
  client.send_frame("HEADERS es+eh 1 :method=GET :scheme=http :authority=a :path=#{path}")
  yield
  client.send_frame("RST_STREAM - 1 #8")
  client
end

WAYS = %w[http1 http2].freeze

def abandon(way)
  kept = send("over_#{way}", "/slow/#{way}") { sleep 0.001 until Observer.running("mark_#{way}").positive? }
  abandoned = now
  answer = Net::HTTP.get(URI("http://127.0.0.1:#{PORT}/"))
  answered = now - abandoned
  sleep 0.002 while Observer.running("mark_#{way}").positive?
  kept&.close
  { answer:, next: answered.round(4), gone: (now - abandoned).round(4) }
end

configuration = Heddle::Server::Configuration.new(bind: ["127.0.0.1:0"], access_log: false, cancel_on_disconnect: :safe)
server = Heddle::Server.new(configuration, log: Heddle::Server::Log.new(output: StringIO.new, access: false))
PORT = server.open.first[/\d+\z/].to_i
thread = Thread.new { server.run(APP) }
thread.report_on_exception = true
Net::HTTP.get(URI("http://127.0.0.1:#{PORT}/")) # opens the connection
seen = WAYS.to_h { |way| [way, abandon(way)] }
server.stop
thread.join
puts JSON.generate(seen)
