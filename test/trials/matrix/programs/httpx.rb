# frozen_string_literal: true

require "httpx"
require "heddle/net/dns"
require_relative "../http2_stand_in"

proves_together("httpx") { |url| HTTPX.get(url).raise_for_status }
proves_cut { |url| HTTPX.get(url).raise_for_status.to_s }
proves_abandoned { |url| HTTPX.get(url).raise_for_status.to_s }

# Runs where a server of names does, and gives what a session needs to ask it.
def with_names
  server = Heddle::Net::DNS::Server.new("127.0.0.1:0") do |query|
    query.type == :A ? query.answer("127.0.0.1") : query.none
  end
  Heddle.run do
    Heddle.scope do |scope|
      ready = Heddle::Promise.new
      scope.async(background: true) { server.run { ready.resolve } }
      ready.wait
      yield nameserver: [["127.0.0.1", server.addresses.first[/\d+\z/].to_i]], cache: false
    end
  end
end

# Each task makes 50 requests to five hosts, every second one with a time limit of its own.
# @yield [task, index] the session and the host's name
def proves_persistent(what)
  got = Heddle.map(0...CLIENTS) do |task|
    Array.new(50) do |index|
      session, host = yield(task, index)
      session = session.with(timeout: { request_timeout: 30 + index }) if index.odd?
      session.get("#{STAND_IN.sub("127.0.0.1", host)}/#{task}/#{index}").raise_for_status.to_s
    end
  end
  proves(what, got == Array.new(CLIENTS) { |task| Array.new(50) { |index| "/#{task}/#{index}" } })
end

# httpx's issue 94: one session that keeps its connections, in all tasks.
Heddle.run do
  session = HTTPX.plugin(:persistent).with(resolver_class: :system)
  proves_persistent("one persistent session answers 8 tasks, each with its own") { [session, "localhost"] }
end

# httpx's issue 129: tasks of one session that look names up with httpx's own resolver hang, or get a ResolveError.
puts "noted: in one persistent session, tasks that look names up with httpx's own resolver fail or hang, as with async"
with_names do |resolver_options|
  sessions = Array.new(CLIENTS) { HTTPX.plugin(:persistent).with(resolver_options:) }
  proves_persistent("8 persistent sessions look names up at the same time") do |task, index|
    [sessions[task], "host#{index % 5}.matrix.example"]
  end
end

# httpx's issue 117: streams that are abandoned before the server has sent anything.
HTTP2StandIn.with do |address|
  http2 = HTTPX.plugin(:fiber_concurrency).plugin(:stream).with(fallback_protocol: "h2")
  Heddle.run do
    tasks = Array.new(CLIENTS) { Heddle.async { http2.get("#{address}/silent", stream: true).each { |part| part } } }
    sleep 0.01 until HTTP2StandIn.silent(address) == CLIENTS
    tasks.each(&:cancel)
    sleep 0.01 until tasks.all?(&:ended?)
    before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    sleep 1
    used = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - before
    proves("abandoned HTTP/2 streams leave the loop idle", used < 0.3)
  end
end
