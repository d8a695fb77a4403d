# frozen_string_literal: true

require "json"
require "socket"
require_relative "../../benchmark/support/process_tree"
require_relative "../../benchmark/support/process_usage"

module SoakTest
  # Memory and descriptors of a server's processes, again and again.
  class Samples
    # @!attribute time [Float] seconds since the soak began
    # @!attribute role [String] "master", "worker 0" …
    # @!attribute memory [Float] MB that are of no file
    # @!attribute own [Float] MB that the process shares with none
    # @!attribute descriptors [Integer] without connections of clients
    # @!attribute parts [Hash{String => Float}] MB, what the process itself says (app/parts.rb)
    Sample = Data.define(:time, :pid, :role, :memory, :own, :descriptors, :parts)

    # @return [Array<Sample>]
    attr_reader :all

    # @param server [Integer] process ID of the master
    # @param control [String] path of the control socket
    # @param parts [String] folder in which the processes write
    def initialize(server, control, parts)
      @tree = Bench::ProcessTree.new(server)
      @control = control
      @parts = parts
      @all = []
      @cpu = {}
    end

    # @param time [Float]
    def take(time)
      connections = connections_by_pid
      @tree.pids.each do |pid|
        @cpu[pid] = Bench::ProcessUsage.cpu_seconds_of(pid) || @cpu[pid]
        role = role_of(pid) or next
        parts = parts_of(pid)
        memory = parts.delete("memory") || Bench::ProcessUsage.anonymous_megabytes_of(pid)
        own = parts.delete("own") || Bench::ProcessUsage.private_megabytes_of(pid)
        next unless memory && own

        @all << Sample.new(time:, pid:, role:, memory:, own:, parts:,
                           descriptors: Dir.children("/proc/#{pid}/fd").size - connections.fetch(pid, 0))
      rescue Errno::ENOENT, Errno::ESRCH
        next # it has ended meanwhile
      end
    end

    # @return [Float] CPU seconds of all processes, of those that have ended, too
    def cpu_seconds = @cpu.values.compact.sum

    # @return [Hash{Integer => Integer}] process IDs of the workers by their numbers
    def workers
      @tree.pids.filter_map do |pid|
        number = role_of(pid).to_s[/\Aworker (\d+)/, 1]
        [number.to_i, pid] if number
      end.to_h
    end

    private

    def role_of(pid)
      title = File.read("/proc/#{pid}/cmdline").delete("\0").strip
      title[/\Aheddle: (master|mold|jobs|reserve worker \d+|worker \d+)/, 1]
    rescue Errno::ENOENT, Errno::ESRCH
      nil
    end

    # Empty for one that says nothing, or not yet.
    def parts_of(pid)
      JSON.parse(File.read(File.join(@parts, pid.to_s))).transform_values { |bytes| bytes / 1_048_576.0 }
    rescue Errno::ENOENT
      {}
    end

    def connections_by_pid
      socket = UNIXSocket.new(@control)
      socket.timeout = 10
      socket.write("GET /status HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      workers = JSON.parse(socket.read.split("\r\n\r\n", 2).last)["workers"]
      workers.to_h { |worker| [worker["pid"], worker["connections"].to_i] }
    rescue SystemCallError, IOError, JSON::ParserError
      {}
    ensure
      socket&.close
    end
  end
end
