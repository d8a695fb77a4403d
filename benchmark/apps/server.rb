# frozen_string_literal: true

require "English"
require "net/http"
require "tempfile"
require_relative "../../test/support/free_port"

module Bench
  module Apps
    # One server with an application, in processes of its own.
    class Server
      # Seconds until it answers, and until it has stopped.
      START = 180
      STOP = 20

      # @return [String]
      attr_reader :name
      # @return [String] as clients name it
      attr_reader :host
      # @return [Integer]
      attr_reader :port

      # @param command [Array<String>] {port} stands for the port
      # @param environment [Hash{String => String}] the same
      # @param host [String] for the field Host
      def initialize(name, folder, command, environment, host)
        @name = name
        @folder = folder
        @host = host
        @port = FreePort.find
        @command = command.map { |word| fill(word) }
        @environment = environment.transform_values { |text| text && fill(text) }
      end

      # @return [void]
      def start
        @log = Tempfile.new("apps")
        @pid = Process.spawn(@environment, *@command, chdir: @folder, pgroup: true, out: @log.path, err: %i[child out])
        deadline = now + START
        sleep(0.2) until answers? || now > deadline || ended?
        return if answers?

        stop
        abort "#{name} does not answer:\n#{File.read(@log.path).lines.last(30).join}"
      end

      # @return [Net::HTTPResponse]
      def get(path, fields = {})
        Net::HTTP.start("127.0.0.1", @port, read_timeout: 60) do |http|
          http.get(path, { "host" => @host, "x-forwarded-proto" => "https", **fields })
        end
      end

      # @return [Float] of all of its processes, so far
      def cpu_seconds = ProcessTree.new(@pid).cpu_seconds

      # @return [Float]
      def pss_megabytes = ProcessTree.new(@pid).pss_megabytes

      # @return [void]
      def stop
        return unless @pid

        Process.kill("TERM", @pid)
        deadline = now + STOP
        sleep(0.1) until ended? || now > deadline
        Process.kill("KILL", -@pid) unless ended?
      rescue Errno::ESRCH
        nil
      ensure
        @pid = nil
      end

      private

      def fill(word) = word.gsub("{port}", @port.to_s)

      def answers?
        get("/").is_a?(Net::HTTPResponse)
      rescue SystemCallError, IOError, Timeout::Error
        false
      end

      def ended? = @ended ||= !Process.wait(@pid, Process::WNOHANG).nil?

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
