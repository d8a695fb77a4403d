# frozen_string_literal: true

require "test_helper"
require "heddle/server"
require "support/prometheus_text"
require "support/served_process"
require "support/steady_load"
require "tmpdir"
require "fileutils"

# `heddle serve` with workers, as a person starts it, in a folder of its own.
module ClusterCase
  PATIENCE = 90

  # Says which process has answered; on /hold when the file `go` is there, having made `held`; on /block when its thread
  # has slept for a second; on /die not at all.
  APP = <<~RUBY
    run do |env|
      case env["PATH_INFO"]
      when "/hold"
        File.write("held", "")
        sleep 0.01 until File.exist?("go")
      when "/block"
        File.write("held", "")
        Fiber.blocking { sleep 1 }
      when "/die" then Process.kill("KILL", $$)
      end
      [200, { "x-worker" => $$.to_s }, ["code 1"]]
    end
  RUBY

  GET = "GET %s HTTP/1.1\r\nHost: a\r\n\r\n"

  def setup
    @folder = File.realpath(Dir.mktmpdir)
    write("config.ru", APP)
  end

  def teardown
    served&.stop
    FileUtils.remove_entry(@folder)
  end

  attr_reader :served

  def path(name) = File.join(@folder, name)

  # In its place at once, as a deployment does it.
  def write(name, text)
    FileUtils.mkdir_p(File.dirname(path(name)))
    File.write(path("#{name}.new"), text)
    File.rename(path("#{name}.new"), path(name))
  end

  # Without reserve workers, unless a test is about them; within a {MemoryGroup}.
  def serve(*arguments, workers: 2, reserves: 0, environment: { "RACK_ENV" => "production" }, within: nil)
    command = [*ServedProcess::HEDDLE, "serve", *(["-w", workers.to_s] if workers), "--reserve-workers", reserves.to_s,
               "-p", "0", "-b", "127.0.0.1", "--no-access-log", *arguments]
    command = within.command(command) if within
    @served = ServedProcess.new(command, folder: @folder, environment:)
  end

  # Asks the master, which listens where `--control unix:control.sock` says.
  def client
    Heddle::Server::Control::Client.new(Heddle::Server::Control::Address.new(path: path("control.sock")))
  end

  # @return [Hash] what the master says to Prometheus
  def metrics
    socket = UNIXSocket.new(path("control.sock"))
    socket.write("GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    PrometheusText.parse(socket.read.split("\r\n\r\n", 2).last)
  ensure
    socket&.close
  end

  # @return [Integer, nil] its process; while one takes over from the other, nobody may answer
  def master
    client.status[:master][:pid]
  rescue Heddle::Server::Control::Client::NoServerError
    nil
  end

  # Process 0 is the test's own process group.
  def signal(name, pid = served.pid) = pid > 1 ? Process.kill(name, pid) : flunk("process #{pid} gets no signal")

  def said(text) = served.output.scan(text).size

  def wait_for(text, times = 1) = wait_until("#{text.inspect} is not said") { said(text) >= times }

  def wait_until(what = "nothing happens")
    deadline = now + PATIENCE
    until yield
      flunk "#{what}:\n#{served.output}" if now > deadline
      sleep 0.01
    end
  end

  def load(**) = SteadyLoad.new(served.uri.host, served.uri.port, **)

  def ask(path)
    socket = TCPSocket.new(served.uri.host, served.uri.port)
    socket.timeout = PATIENCE
    socket.write(format(GET, path))
    socket
  end

  # => [a connection, one to another worker, the first one's process]
  def connections_of_two_workers
    sockets = {}
    wait_until do
      socket = TCPSocket.new("127.0.0.1", served.uri.port)
      socket.write(format(GET, "/"))
      pid = Integer(socket.readpartial(10_000)[/x-worker: (\d+)/, 1])
      sockets.key?(pid) ? socket.close : sockets[pid] = socket
      sockets.size == 2
    end
    [*sockets.values, sockets.keys.first]
  end

  # Which process answers now.
  def worker = Integer(served.get("/")["x-worker"])

  def workers(count = 2)
    found = []
    wait_until("there are not #{count} workers") { (found |= [worker]).size >= count }
    found
  end

  def children_of(pid) = File.read("/proc/#{pid}/task/#{pid}/children").split.map(&:to_i)

  def alive?(pid)
    Process.kill(0, pid)
    true
  rescue Errno::ESRCH
    false
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
