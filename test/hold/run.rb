# frozen_string_literal: true

require "json"
require "tmpdir"
require_relative "../support/served_process"
require_relative "elsewhere"
require_relative "handshakes"
require_relative "http2"
require_relative "real_time"
require_relative "resources"

# Fills one resource of a server in a process of its own, and looks at the server as another client does.
module Hold
  # Columns: their titles, each as wide as it is to be.
  TITLES = ["resource            ", "from", "     held", "    idle", "     3/4", "   bound", "   after", "descriptors",
            "MB"]
           .freeze
  HEAD = TITLES.join(" ").freeze

  # What was seen: milliseconds of the bystander's slowest request, numbers of clients that held something, and the
  # server's descriptors and memory before and after.
  Result = Data.define(:resource, :addresses, :held, :times, :descriptors, :memory, :connections) do
    # Was the bystander answered in each phase, and within a second (of a machine that is not busy) at the bound?
    def answered? = times.values.all?

    def quick? = answered? && times[:bound] <= 1_000 && times[:most] <= [3 * times[:idle], 100].max

    # Is all that was held given back?
    def released? = connections.last <= connections.first && descriptors.last <= descriptors.first + 4

    def to_s
      shown = times.values_at(:idle, :most, :bound, :after).map { |time| time ? "#{time.round} ms" : "none" }
      cells = [resource, addresses, held.join("/"), *shown, descriptors.join(" → "), memory.join(" → ")].map(&:to_s)
      row = TITLES.zip(cells).map { |title, cell| title[0] == " " ? cell.rjust(title.size) : cell.ljust(title.size) }
      [*row, *problems].join(" ").rstrip
    end

    private

    def problems
      [("not answered" unless answered?), ("slow" if answered? && !quick?), ("not released" unless released?)].compact
    end
  end

  # One server and the clients that hold it up.
  class Trial
    # Seconds after which all must be released.
    RELEASE = 30
    # A connection may be closed for others when it was idle for half a second.
    SETTLED = 0.8

    def initialize(resource, addresses, samples: 20)
      @resource = resource
      @addresses = addresses
      @samples = samples
    end

    # @return [Result]
    def run
      Dir.mktmpdir("heddle-hold") do |folder|
        @control = File.join(folder, "control.sock")
        environment = { "RACK_ENV" => "production", **@resource.environment }
        @server = ServedProcess.new(command(folder), folder:, environment:)
        observe
      ensure
        @server&.stop
      end
    end

    private

    def command(folder)
      [*ServedProcess::HEDDLE, "serve", "--workers", "0", "-b", @resource.bind, "--trusted-proxies", @resource.proxies,
       "--control", "unix:#{@control}", *OPTIONS, *@resource.options(folder), @resource.application(folder)]
    end

    def observe
      @holder = holder = @resource.new(@server, @control, @addresses)
      look # loads what the first request needs
      times = { idle: look }
      before = counters
      times[:most], most = hold(holder, holder.bound * 3 / 4)
      times[:bound], bound = hold(holder, (holder.bound * 1.1).ceil)
      holder.release
      after = counters_after(before)
      times[:after] = look
      Result.new(@resource.label, @addresses, [most, bound], times,
                 *%i[descriptors memory connections].map { |name| [before[name], after[name]] })
    end

    # => the bystander's time, and the number of clients that hold something
    def hold(holder, count)
      holder.hold(count)
      sleep SETTLED
      [look, holder.held]
    end

    # => milliseconds of the slowest of some requests, each on a connection of its own; nil: one had no response
    def look
      Array.new(@samples) do
        began = now
        return nil unless @holder.ask

        (now - began) * 1_000
      end.max
    rescue SystemCallError, IO::TimeoutError
      nil
    end

    def counters
      status = File.read("/proc/#{@server.pid}/status")
      { descriptors: Dir.children("/proc/#{@server.pid}/fd").size, memory: status[/^VmRSS:\s+(\d+)/, 1].to_i / 1_024,
        connections: connections }
    end

    # As they are when all is released, or at the latest after RELEASE seconds.
    def counters_after(before)
      deadline = now + RELEASE
      loop do
        found = counters
        done = found[:connections] <= before[:connections] && found[:descriptors] <= before[:descriptors] + 4
        return found if done || now > deadline

        sleep 0.1
      end
    end

    def connections
      socket = UNIXSocket.new(@control)
      socket.write("GET /status HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      JSON.parse(socket.read.split("\r\n\r\n", 2).last)["workers"].first.fetch("connections")
    ensure
      socket&.close
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
