# frozen_string_literal: true

require "net/http"
require "socket"
require_relative "../../support/free_port"

module Switch
  # A server of the application in a process group of its own. It is ready when it answers a request.
  class Served
    # Seconds after which a start has failed.
    TIMEOUT = 600
    private_constant :TIMEOUT

    # @return [Integer]
    attr_reader :pid
    # @return [URI::HTTP]
    attr_reader :uri

    # @return [Integer] a port on which nothing listens
    def self.free_port = FreePort.find

    # @param command [Array<String>]
    # @param port [Integer] on which it is to listen
    # @param log [String] the file for what it prints
    # @param ready [String] the path that is asked
    # @param stop_timeout [Integer] seconds until a server that does not end is killed
    def initialize(command, environment:, folder:, port:, log:, ready: "/up", stop_timeout: TIMEOUT)
      @log = log
      @stop_timeout = stop_timeout
      @uri = URI("http://127.0.0.1:#{port}")
      @pid = Process.spawn(environment, *command, chdir: folder, in: File::NULL, out: log, err: %i[child out],
                                                  pgroup: true)
      @process = Process.detach(@pid)
      wait_until_ready(command, ready)
    end

    # @return [String] what it has printed
    def output = File.read(@log).scrub

    # @return [String] how it has ended: "in order" by exit code 0 or by the signal itself, as Puma does
    def stop(signal = "TERM")
      kill(signal, @pid) if @process.alive?
      kill("KILL", -@pid) unless @process.join(@stop_timeout)
      status = @process.value
      status.success? || status.termsig == Signal.list[signal] ? "in order" : status.to_s
    ensure
      kill("KILL", -@pid) # whatever it left behind
    end

    # @return [Integer] the memory of all of its processes together, shared pages by part (PSS), in bytes
    def memory
      processes = Dir["/proc/[0-9]*/stat"].filter_map do |stat|
        pid, group = File.read(stat).sub(/\(.*\)/, "").split.values_at(0, 3)
        pid if group.to_i == @pid
      rescue SystemCallError
        nil
      end
      processes.sum { |pid| File.read("/proc/#{pid}/smaps_rollup")[/^Pss: +(\d+)/, 1].to_i * 1024 }
    end

    private

    def wait_until_ready(command, ready)
      deadline = now + TIMEOUT
      until answers?(ready)
        next sleep(0.1) if @process.alive? && now < deadline

        stop("KILL")
        raise "#{command.join(" ")} does not serve:\n#{output.lines.last(20).join}"
      end
    end

    # A proxy in front of it, such as Thruster, answers 502 first; with force_ssl it redirects.
    def answers?(ready)
      answer = Net::HTTP.start(@uri.host, @uri.port, read_timeout: TIMEOUT) { |http| http.get(ready) }
      !answer.is_a?(Net::HTTPServerError)
    rescue SystemCallError, EOFError
      false
    end

    def kill(signal, pid)
      Process.kill(signal, pid)
    rescue Errno::ESRCH
      nil
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
