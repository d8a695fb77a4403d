# frozen_string_literal: true

require "test_helper"
require "etc"
require "heddle/server"
require "open3"
require "rbconfig"
require "socket"
require "timeout"
require "tmpdir"

# Sockets that were open when the server was started (sd_listen_fds(3)).
class InheritedSocketTest < Minitest::Test
  PATIENCE = 60
  ROOT = File.expand_path("../..", __dir__)
  HEDDLE = [RbConfig.ruby, "-I#{ROOT}/lib", "#{ROOT}/exe/heddle"].freeze

  def setup
    @folder = Dir.mktmpdir
    File.write(File.join(@folder, "config.ru"), 'run ->(env) { [200, {}, ["env: ", ENV.keys.grep(/LISTEN/).inspect]] }')
  end

  def teardown
    @open&.each(&:close)
    FileUtils.rm_rf(@folder)
  end

  # Starts the server as systemd would, with these sockets.
  def handed(sockets, *arguments, names: nil)
    @open = sockets
    descriptors = sockets.each_with_index.to_h { |socket, index| [3 + index, socket.fileno] }
    environment = { "LISTEN_FDS" => sockets.size.to_s, "LISTEN_FDNAMES" => names, "RACK_ENV" => "development" }
    command = ["/bin/sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh", *HEDDLE, "serve", *arguments]
    Open3.popen2e(environment, *command, chdir: @folder, **descriptors) do |input, output, process|
      input.close
      said = +""
      Timeout.timeout(PATIENCE) do
        while !said.include?("stops it") && (line = output.gets)
          said << line
        end
      end
      yield said, output
    ensure
      end_of(process)
      output.read
      process.join(PATIENCE) or raise "it does not end"
    end
  end

  def end_of(process)
    Process.kill(:INT, process.pid)
  rescue Errno::ESRCH
    # It has ended by itself.
  end

  def ask(socket)
    socket.write("GET / HTTP/1.0\r\n\r\n")
    Timeout.timeout(PATIENCE) { socket.read }
  ensure
    socket.close
  end

  def tcp = TCPServer.new("127.0.0.1", 0)

  def test_inherited_sockets_are_served_without_a_bind_option
    web = tcp
    local = UNIXServer.new(File.join(@folder, "s"))
    handed([web, local]) do |said|
      assert_match(%r{on http://127.0.0.1:#{web.local_address.ip_port}, unix:#{@folder}/s}, said)
      assert_match(/env: \[\]\z/, ask(TCPSocket.new("127.0.0.1", web.local_address.ip_port)))
      assert_match(/200 OK/, ask(UNIXSocket.new(File.join(@folder, "s"))))
    end

    assert_path_exists File.join(@folder, "s") # it is systemd's
  end

  def test_a_new_master_continues_with_them
    web = tcp
    handed([web], "-w", "2", "--pidfile", "server.pid") do |said, output|
      assert_match(/on http:\S+:#{web.local_address.ip_port}$/, said)
      first = Integer(File.read(File.join(@folder, "server.pid")))
      Process.kill(:USR2, first)
      said = +""
      Timeout.timeout(PATIENCE) { said << output.gets until said.include?("the old master ends") }
      second = Integer(File.read(File.join(@folder, "server.pid")))

      refute_equal first, second
      assert_match(/200 OK/, ask(TCPSocket.new("127.0.0.1", web.local_address.ip_port)))
      Process.kill(:TERM, second)
    end
  end

  def test_a_name_chooses
    web = tcp
    other = tcp
    handed([other, web], "-b", "systemd:web", names: "other:web") do |said|
      assert_match(/on http:\S+:#{web.local_address.ip_port}$/, said)
    end
  end

  def test_an_address_that_is_among_them_is_taken_from_there
    web = tcp
    handed([web], "-b", "127.0.0.1:#{web.local_address.ip_port}") do |said|
      assert_match(/on http:\S+:#{web.local_address.ip_port}$/, said)
      assert_match(/200 OK/, ask(TCPSocket.new("127.0.0.1", web.local_address.ip_port)))
    end
  end

  def test_an_unknown_socket_name_is_reported
    handed([tcp], "-b", "systemd:web", names: "other") do |said|
      assert_match(/heddle: systemd has passed no socket named web \(FileDescriptorName=\)/, said)
    end
  end

  def test_sockets_for_another_process_are_ignored
    variables = { "LISTEN_FDS" => "1", "LISTEN_PID" => "1" }

    assert_empty Heddle::Server::InheritedSocket.find(variables)
    assert_equal 2, variables.size
  end
end
