# frozen_string_literal: true

# ruby measure.rb [QUERIES]: starts the stand-in and the DNS server, asks for so many summaries at once, by one client
# and then each by a dig of its own, and prints how long they took and how often the slow service was asked.

require "heddle"
require "heddle/net/dns"
require "json"
require "net/http"
require "rbconfig"

# See above.
class Measure
  # @param queries [Integer]
  def initialize(queries)
    @queries = queries
  end

  def run
    @service = start([RbConfig.ruby, "-S", "heddle", "serve", "--bind", "127.0.0.1", "--port", "0"], {})
    @server = start([RbConfig.ruby, "summaries.rb"], { "SERVICE" => @service[:url], "LISTEN" => "127.0.0.1:0" })
    ask_by_one_client
    ask_by_dig
    ask_again
    ask_long
  ensure
    [@server, @service].compact.each do |program|
      Process.kill(:TERM, program[:io].pid)
      program[:io].close
    end
  end

  private

  # @return [Hash] `io:`, `url:` or `port:`, once it has printed where it listens
  def start(command, environment)
    io = IO.popen(environment, command, chdir: __dir__, err: %i[child out])
    lines = +""
    until (found = lines.match(%r{(?<url>http://[^\s/]+:\d+)|summaries on [\d.]+:(?<port>\d+)}))
      lines << (io.gets or abort("#{command.join(" ")} did not start:\n#{lines}"))
    end
    { io:, url: found[:url], port: found[:port] }
  end

  # @param source [String] dig sets SO_REUSEPORT: two at once may get the same port, and one of them both answers
  def dig(name, source = "127.0.0.1")
    IO.popen(["dig", "@127.0.0.1", "-b", source, "-p", @server[:port], "+tries=1", "+time=10", name, "TXT"])
  end

  def ask_by_one_client
    client = Heddle::Net::DNS::Client.new("127.0.0.1:#{@server[:port]}")
    began = now
    answers = Heddle.run { Heddle.map(1..@queries) { |number| client.records("page#{number}.wiki", :TXT) } }
    puts "#{answers.count(&:any?)} of #{@queries} answered in #{(now - began).round(2)} s by one client; #{asked}"
  end

  # The start of so many processes is part of the time.
  def ask_by_dig
    began = now
    answers = Array.new(@queries) { |number| dig("article#{number}.wiki", "127.0.1.#{number % 254 + 1}") }.map(&:read)
    seconds = now - began
    whole, others = answers.partition { |answer| answer.include?("All that is known about") }
    puts others
    puts "#{whole.size} of #{@queries} answered in #{seconds.round(2)} s by dig, the slowest " \
         "after #{answers.map { |answer| query_time(answer) }.max} ms; #{asked}"
  end

  def ask_again
    answer = dig("article0.wiki").read
    puts "the first one again: #{query_time(answer)} ms; #{asked}"
  end

  def ask_long
    answer = dig("long.wiki").read
    size = answer[/IN\s+TXT\s+"(.*)"/, 1].gsub('" "', "").bytesize
    puts "a summary of #{size} bytes: #{answer[/Truncated, retrying in TCP mode/]}, " \
         "#{answer[/^;; SERVER.*\((UDP|TCP)\)/, 1]}"
  end

  def query_time(answer) = answer[/Query time: (\d+) msec/, 1].to_i

  def asked
    counts = JSON.parse(Net::HTTP.get(URI("#{@service[:url]}/counts")))
    "the service was asked #{counts["requests"]} times, #{counts["most"]} at once"
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

Measure.new(Integer(ARGV.fetch(0, "50"))).run
