# frozen_string_literal: true

require "test_helper"
require_relative "../../../benchmark/support/bench"

# The suite brings the classes.
Bench::Suite.load("http")

class HTTPBenchmarkServerTest < Minitest::Test
  # A contestant that is a Ruby program of a few lines.
  class Program < Bench::HTTP::Contestant
    ANSWERING = <<~'RUBY'
      require "socket"
      server = TCPServer.new("127.0.0.1", Integer(ARGV.first))
      loop do
        socket = server.accept
        path = socket.gets.split[1]
        length = 0
        while (line = socket.gets) != "\r\n"
          length = line[/\d+/].to_i if line.match?(/\Acontent-length/i)
        end
        body = length.zero? ? path : socket.read(length)
        status = path == "/broken" ? "500 No" : "200 OK"
        socket.write("HTTP/1.1 #{status}\r\nConnection: close\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}")
        socket.close
      end
    RUBY

    def initialize(source = ANSWERING)
      super()
      @source = source
    end

    def key = "program"

    def command(port, folder, _flags)
      path = File.join(folder, "program.rb")
      File.write(path, @source)
      [RbConfig.ruby, "--disable=gems", path, port.to_s]
    end
  end

  def test_start_yields_a_running_server_and_stops_it_afterwards
    pid = nil
    serve(Program.new) do |server|
      pid = server.pid
      server.check("/path", expected: "/path")
      server.check("/path", body: "posted", expected: "posted")

      assert_operator server.tree.cpu_seconds, :>=, 0
      assert_operator server.tree.pss_megabytes, :>, 0
    end
    assert_raises(Errno::ESRCH) { Process.kill(0, pid) }
  end

  { "what_it_has_forked_is" => "fork { sleep }",
    "children_in_groups_of_their_own_are" => "fork { Process.setpgid(0, 0); sleep }" }.each do |what, fork|
    define_method("test_#{what}_ended_too") do
      forking = "#{fork}\n#{Program::ANSWERING}"
      children = serve(Program.new(forking)) { |server| server.tree.pids - [server.pid] }

      assert_equal 1, children.size
      # Whoever takes over orphans may not have reaped it yet: a dead one has no command line.
      assert_nil(children.find { |pid| alive?(pid) })
    end
  end

  def test_a_wrong_response_raises
    serve(Program.new) do |server|
      error = assert_raises(Bench::Child::Failed) { server.check("/path", expected: "else") }

      assert_match(/answered with 5 bytes that are not those of the application/, error.message)
      assert_match(/answered 500/,
                   assert_raises(Bench::Child::Failed) { server.check("/broken", expected: "") }.message)
    end
  end

  def test_a_server_that_refuses_to_start_says_why_without_a_path_of_this_machine
    error = assert_raises(Bench::Child::Failed) { serve(Program.new('abort("error: no licence in " + __dir__)')) }

    assert_match(/the server ended \(status 1\): error: no licence in/, error.message)
    refute_includes error.message, Dir.tmpdir
  end

  def test_a_server_that_dies_raises_with_its_last_output
    dying = Program::ANSWERING.sub("length = 0", 'abort("error: enough") if path == "/die"; length = 0')
    error = assert_raises(Bench::Child::Failed) do
      serve(Program.new(dying)) { |server| server.check("/die", expected: "/die") }
    end

    assert_match(%r{no right answer to /die: .*; the server ended \(status 1\): error: enough}, error.message)
  end

  private

  def serve(contestant, &) = Bench::HTTP::Server.run(contestant, ruby_flags: [], &)

  def alive?(pid)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
    sleep 0.001 until (words = File.read("/proc/#{pid}/cmdline")).empty? ||
                      Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    !words.empty?
  rescue Errno::ENOENT, Errno::ESRCH
    false
  end
end
