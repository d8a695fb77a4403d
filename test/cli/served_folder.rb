# frozen_string_literal: true

require "open3"
require "support/served_process"
require "socket"
require "tmpdir"

# A folder with a small application, in which tests start `heddle serve` as a person does: `@served`.
module ServedFolder
  # Seconds after which a test has failed, on a machine that is busy with other tests.
  PATIENCE = 60

  # Answers at once, or on /wait when the file `go` is there; tells by the file `arrived` that it has begun.
  CONFIG = <<~RUBY
    run do |env|
      if env["PATH_INFO"] == "/wait"
        File.write("arrived", "")
        sleep 0.01 until File.exist?("go")
      end
      [200, { "content-type" => "text/plain" }, ["hello from \#{File.basename(__FILE__)}"]]
    end
  RUBY

  def setup
    @folder = File.realpath(Dir.mktmpdir)
    File.write(file("config.ru"), CONFIG)
  end

  def teardown
    @served&.stop
    FileUtils.remove_entry(@folder)
  end

  def file(name) = File.join(@folder, name)

  # @param arguments [Array<String>] of `heddle`
  def start(*arguments)
    @served = ServedProcess.new([*ServedProcess::HEDDLE, *arguments, "-p", "0"], folder: @folder)
  end

  # @param arguments [Array<String>] of a `heddle` that has to succeed
  # @return [String] what it has printed
  def heddle_output(*arguments)
    output, status = Open3.capture2e(*ServedProcess::HEDDLE, *arguments, chdir: @folder)

    assert_predicate status, :success?, output
    output
  end

  def wait_until
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until yield
      raise "nothing happens:\n#{@served.output}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

      sleep 0.01
    end
  end

  # @return [TCPSocket] with a request that is being served
  def waiting_request(target = "/wait")
    socket = TCPSocket.new(@served.uri.host, @served.uri.port)
    socket.write("GET #{target} HTTP/1.1\r\nHost: a\r\n\r\n")
    wait_until { File.exist?(file("arrived")) }
    socket
  end
end
