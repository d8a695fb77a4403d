# frozen_string_literal: true

# DNS servers under dnsperf, each with one static answer: Heddle, RubyDNS, and name servers in C as a ceiling.
#
#   bin/bench dns [rounds] [seconds]
#
# Each server is a process of its own, pinned to one core where the machine has two, with dnsperf on another. They take
# turns. Printed are the medians of the rounds: queries a second flat out, what a query costs in CPU of the server, and
# how many of 10,000 and 30,000 queries a second are lost.

require_relative "../bin/support/gem_paths"
require "open3"
require "tempfile"
require_relative "dns/contestant"

# dnsperf against one server.
module DNSBench
  # Names: a server may keep answers by name.
  NAMES = 100

  module_function

  def measure(contestant, seconds)
    contestant.run do |port|
      before = contestant.cpu
      flat = dnsperf(contestant, port, seconds, "-c", "4", "-q", "100")
      used = contestant.cpu - before
      lost = [10_000, 30_000].to_h { |rate| [rate, dnsperf(contestant, port, seconds, "-c", "4", "-Q", rate.to_s)] }
      { rate: flat[:rate], cpu: used / flat[:completed] * 1e6, lost: lost }
    end
  end

  # @return [Hash] rate, completed, lost
  def dnsperf(contestant, port, seconds, *arguments)
    output, = Open3.capture2e(*contestant.pin(1), "dnsperf", "-s", "127.0.0.1", "-p", port.to_s, "-l", seconds.to_s,
                              "-t", "1", "-d", names, *arguments)
    { rate: output[/Queries per second:\s+([\d.]+)/, 1].to_f, completed: output[/Queries completed:\s+(\d+)/, 1].to_i,
      lost: output[/Queries lost:\s+(\d+)/, 1].to_i }
  end

  # @return [String] the path of a file of questions
  def names
    @names ||= Tempfile.create("names").tap do |file|
      NAMES.times { |number| file.puts("n#{number}.bench.test A") }
      file.close
      at_exit { File.unlink(file.path) }
    end.path
  end

  def median(values) = values.sort[values.size / 2]

  def line(name, found)
    rates = [10_000, 30_000].map do |rate|
      reached = median(found.map { |one| one[:lost][rate][:rate] }).round
      "#{rate}/s: #{reached} answered, #{median(found.map { |one| one[:lost][rate][:lost] })} lost"
    end
    "#{name.ljust(8)} #{median(found.map { |one| one[:rate] }).round} queries/s, " \
      "#{median(found.map { |one| one[:cpu] }).round(1)} µs of CPU each; #{rates.join("; ")}"
  end

  def run(rounds, seconds)
    contestants = DNSContestant.all
    results = contestants.to_h { |contestant| [contestant.name, []] }
    rounds.times do
      contestants.each do |contestant|
        found = measure(contestant, seconds)
        results[contestant.name] << found if found
      end
    end
    contestants.each do |contestant|
      found = results[contestant.name]
      puts found.empty? ? "#{contestant.name.ljust(8)} left out: #{contestant.trouble}" : line(contestant.name, found)
    end
    ours, theirs = %w[Heddle RubyDNS].map { |name| results[name].map { |one| one[:rate] } }
    puts "Heddle / RubyDNS: #{(median(ours) / median(theirs)).round(1)}" if ours.any? && theirs.any?
  end
end

DNSBench.run(Integer(ARGV.fetch(0, 3)), Integer(ARGV.fetch(1, 3)))
