# frozen_string_literal: true

require "heddle"
require "heddle/net/dns"
require "json"
require "net/http"

# Summaries of articles, from a service that is slow: each is kept for an hour.
class Summaries
  TTL = 3_600
  # The one that was kept first goes first.
  LIMIT = 1_000

  def initialize(service)
    @service = URI(service)
    @kept = {}
  end

  # @return [String, nil] nil when there is no such article
  def [](title)
    text, since = @kept[title]
    return text if since && now - since < TTL

    @kept.shift if @kept.size >= LIMIT
    text = fetch(title)
    @kept[title] = [text, now]
    text
  end

  private

  def fetch(title)
    response = Net::HTTP.get_response(@service + "/summary/#{title}")
    return nil if response.is_a?(Net::HTTPNotFound)

    response.value # raises for any other that is no success: the client gets SERVFAIL
    JSON.parse(response.body).fetch("summary")
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

summaries = Summaries.new(ENV.fetch("SERVICE", "http://127.0.0.1:9292"))
# How long resolvers may keep that a name does not exist: 300 s.
soa = Heddle::Net::DNS::Record.of("wiki", :SOA, 300, ["localhost", "nobody.invalid", 1, 3_600, 600, 86_400, 300])
address = ENV.fetch("LISTEN", "127.0.0.1:5353")
deadline = Float(ENV.fetch("DEADLINE", 2))

server = Heddle::Net::DNS::Server.new(address, deadline: deadline) do |query|
  case query
  in { name: /\A([a-z0-9_-]+)\.wiki\z/, type: :TXT }
    text = summaries[Regexp.last_match(1)]
    text ? query.answer(text, ttl: Summaries::TTL) : query.absent(soa: soa)
  in { name: "wiki" | /\.wiki\z/ }
    query.none(soa: soa)
  else
    query.refuse
  end
end

Heddle.run do
  server.run do
    puts "summaries on #{server.addresses.first}"
    $stdout.flush
  end
end
