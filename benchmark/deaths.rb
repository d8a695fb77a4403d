# frozen_string_literal: true

# bin/bench deaths [--rounds N] [--clients N]
#
# What the death of one of two workers costs: clients ask for pages of 5 ms, each over one connection, and after two
# seconds a worker is killed (KILL), crashes (SEGV), or keeps Ruby's lock for 10 s, in a handler of a signal. For Heddle
# and Puma, in turns: requests that were lost, by whether the application had begun them, requests that took more than a
# second, and the longest one. Needs Linux.

require_relative "../bin/support/gem_paths"
require "optparse"
require "rbconfig"
require "socket"
require "tmpdir"
require_relative "support/bench"
require_relative "../test/support/free_port"

module Bench
  # One run for each server and kind of death.
  module Deaths
    APPLICATION = <<~'RUBY'
      require "fiddle"
      begun = File.open(ENV.fetch("BEGUN"), "a").tap { |file| file.sync = true }
      hold = Fiddle::Function.new(Fiddle.dlopen(nil)["usleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true)
      Signal.trap("CONT") { hold.call(10_000_000) }
      run(lambda do |env|
        _, kind, id = env["PATH_INFO"].split("/")
        begun.syswrite("#{id}\n") if id
        if kind == "page"
          ends = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.005
          100.times.map(&:to_s).join until Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) > ends
        end
        [200, { "content-type" => "text/plain" }, [Process.pid.to_s]]
      end)
    RUBY
    ADDRESS = "tcp://127.0.0.1:%d"
    SERVERS = {
      "Heddle" => [File.expand_path("../exe/heddle", __dir__), "serve", "--no-access-log", "-w", "2", "-b", ADDRESS],
      "Puma" => [Gem.bin_path("puma", "puma"), "-q", "-w", "2", "--preload", "-b", ADDRESS]
    }.freeze
    # Signals, and the seconds of load after each.
    KINDS = { "KILL" => 6, "SEGV" => 6, "CONT" => 14 }.freeze
    TITLES = { "KILL" => "killed", "SEGV" => "crashes", "CONT" => "keeps the lock for 10 s" }.freeze
    BEFORE = 2
    SLOW = 1.0

    # What one run showed.
    Result = Data.define(:answered, :lost_begun, :lost_waiting, :slow, :longest)

    # A client, which asks until the time is up, and never twice for the same.
    class Client
      attr_reader :times, :lost

      def initialize(port, number, till)
        @port = port
        @number = number
        @till = till
        @times = []
        @lost = []
      end

      def run
        count = 0
        while now < @till
          id = "#{@number}-#{count += 1}"
          since = now
          ask("/page/#{id}") ? @times << (now - since) : @lost << id
        end
      ensure
        @socket&.close
      end

      private

      def ask(path)
        @socket ||= TCPSocket.new("127.0.0.1", @port)
        @socket.write("GET #{path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
        size = nil
        while (line = @socket.gets) && line != "\r\n"
          size = line[/\d+/].to_i if line.downcase.start_with?("content-length")
        end
        return true if size && @socket.read(size)&.bytesize == size

        renew
      rescue SystemCallError, IOError
        renew
      end

      def renew
        @socket&.close
        @socket = nil
        false
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    module_function

    def measure(server, kind, clients)
      Dir.mktmpdir do |folder|
        File.write(File.join(folder, "config.ru"), APPLICATION)
        begun = File.join(folder, "begun")
        serve(server, folder, begun) { |port| load(port, kind, clients, begun) }
      end
    end

    def serve(server, folder, begun)
      port = FreePort.find
      pid = spawn({ "RACK_ENV" => "production", "BEGUN" => begun }, RbConfig.ruby,
                  *SERVERS.fetch(server).map { |word| format(word, port) },
                  chdir: folder, out: File::NULL, err: File::NULL, pgroup: true)
      deadline = now + 60
      sleep(0.2) until get(port, "/pid") || now > deadline
      yield port
    ensure
      Process.kill("KILL", -pid)
      Process.wait(pid)
    end

    def load(port, kind, count, begun)
      worker = get(port, "/pid").to_i
      till = now + BEFORE + KINDS.fetch(kind)
      clients = Array.new(count) { |number| Client.new(port, number, till) }
      threads = clients.map { |client| Thread.new { client.run } }
      sleep(BEFORE)
      Process.kill(kind, worker)
      threads.each(&:join)
      result(clients, File.read(begun).split.to_h { |id| [id, true] })
    end

    def result(clients, begun)
      times = clients.flat_map(&:times)
      lost_begun, lost_waiting = clients.flat_map(&:lost).partition { |id| begun.key?(id) }.map(&:size)
      Result.new(answered: times.size, lost_begun:, lost_waiting:, slow: times.count { |time| time > SLOW },
                 longest: times.max)
    end

    # @return [String, nil] the content
    def get(port, path)
      TCPSocket.open("127.0.0.1", port) do |socket|
        socket.write("GET #{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        socket.read.split("\r\n\r\n", 2)[1]
      end
    rescue SystemCallError, IOError
      nil
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

rounds, clients = 3, 200
OptionParser.new do |words|
  words.on("--rounds N", Integer, rounds.to_s) { |count| rounds = count }
  words.on("--clients N", Integer, clients.to_s) { |count| clients = count }
end.parse!

HEADINGS = ["death", "server", "answered", "lost, begun", "lost, waiting", "above 1 s", "longest s"].freeze
results = Hash.new { |hash, key| hash[key] = [] }
rounds.times do
  Bench::Deaths::KINDS.keys.product(Bench::Deaths::SERVERS.keys) do |kind, server|
    results[[kind, server]] << Bench::Deaths.measure(server, kind, clients)
  end
end
lines = results.map do |(kind, server), found|
  fields = Bench::Deaths::Result.members.map { |name| Bench::Statistics.median(found.map(&name)) }
  counts = fields[..-2].map { |value| value.round.to_s }
  [Bench::Deaths::TITLES.fetch(kind), server, *counts, format("%.2f", fields.last)]
end
puts Bench::Table.new(HEADINGS, lines).to_text
