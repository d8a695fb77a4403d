# frozen_string_literal: true

require "json"
require "net/http"
require "open3"
require "socket"

module Switch
  # In which the block of a check runs: asks the served application, runs its commands.
  class Probe
    # Seconds after which a check gives up what it waits for. No check passes or fails by how long something takes.
    TIMEOUT = 600

    # @return [Application]
    attr_reader :application
    # @return [Served, nil]
    attr_reader :served

    def initialize(application, served)
      @application = application
      @served = served
    end

    # @raise [RuntimeError] if the condition does not hold
    def expect(condition, message)
      raise message unless condition
    end

    # @return [Net::HTTPResponse]
    def get(path, headers = {}) = request(Net::HTTP::Get.new(path, headers))

    # @return [Net::HTTPResponse]
    def post(path, form = {}, headers = {})
      request(Net::HTTP::Post.new(path, headers).tap { |post| post.set_form_data(form) })
    end

    # @return [Net::HTTPResponse]
    def request(request, to: served)
      Net::HTTP.start(to.uri.host, to.uri.port, read_timeout: TIMEOUT) { |http| http.request(request) }
    end

    # @return [Boolean] whether somebody listens there
    def connects?(address, port)
      TCPSocket.open(address, port).close
      true
    rescue SystemCallError
      false
    end

    # @return [String] what the command has printed, errors included
    # @raise [RuntimeError] if it fails
    def run(*command, environment: {}, input: "")
      output, status = Open3.capture2e(application.environment.merge(environment), *command,
                                       chdir: application.folder, stdin_data: input)
      expect status.success?, "#{command.join(" ")}: #{output.lines.last(15).join}"
      output
    end

    # Puma 8.0.2 on Ruby 3.4 sometimes hangs in IO#close. Heddle is not compared with that.
    # @return [String] how the server has ended
    def ended(server, signal = "TERM")
      how = server.stop(signal)
      application.server == "puma" ? "in order" : how
    end

    # @return [String] the path of a program of bin/packages.txt
    def program(name)
      found = ENV.fetch("PATH").split(File::PATH_SEPARATOR).map { |folder| File.join(folder, name) }
                 .find { |path| File.executable?(path) }
      found or raise "needs the program #{name}: bin/setup --system"
    end

    # @return [Object] what the block returns, as soon as that is not false
    def wait_for(what)
      deadline = now + TIMEOUT
      loop do
        found = yield
        return found if found

        expect now < deadline, "waited #{TIMEOUT} s for #{what}"
        sleep 0.05
      end
    end

    # @return [Array] what the block returned to each of so many threads
    def at_once(count, &block) = Array.new(count) { |number| Thread.new { block.call(number) } }.map(&:value)

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
