# frozen_string_literal: true

# test: smoke

require "test_helper"
require "heddle/server"
require "open3"
require "support/served_process"
require "tmpdir"

# `rackup -s heddle`, with the rackup gem.
class RackupHandlerTest < Minitest::Test
  RACKUP = [RbConfig.ruby, "-I#{File.expand_path("../../lib", __dir__)}", "-e",
            'load Gem.activate_bin_path("rackup", "rackup", ">= 0")', "--"].freeze
  APP = <<~'RUBY'
    run ->(env) { [200, {}, ["#{env["SERVER_PROTOCOL"]} at #{env["PATH_INFO"]}"]] }
  RUBY

  def setup
    skip "needs the gem rackup: bin/setup" if Gem::Specification.find_all_by_name("rackup").empty?
    @folder = Dir.mktmpdir
    File.write(File.join(@folder, "config.ru"), APP)
  end

  def teardown = FileUtils.rm_rf(@folder)

  def test_the_log_comes_through_a_pipe_while_the_server_runs
    served = ServedProcess.new([*RACKUP, "-s", "heddle", "-o", "127.0.0.1", "-p", "0", "-O", "access_log"],
                               folder: @folder)
    served.get("/a")
    wait_for_output(served, " 200 GET /a ")
  ensure
    served&.stop
  end

  def wait_for_output(served, text)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 20
    sleep 0.01 until served.output.include?(text) || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

    assert_includes served.output, text
  end

  def test_rackup_serves_and_ends_with_ctrl_c
    served = ServedProcess.new([*RACKUP, "-s", "heddle", "-o", "127.0.0.1", "-p", "0"], folder: @folder)

    assert_equal "HTTP/1.1 at /a", served.get("/a").body
    assert_equal "HTTP/2 at /a", Open3.capture2("curl", "-sS", "--http2-prior-knowledge", served.at("/a").to_s).first
    assert_match(/^Heddle .* serves on #{Regexp.escape(served.uri.to_s.chomp("/"))}$/, served.output)
    status = served.stop

    assert_predicate status, :success?, served.output
    refute_match(%r{ 200 GET /a }, served.output, "rackup logs requests itself")
  end

  def test_the_commands_reach_the_server_and_its_hook_is_called
    FileUtils.mkdir_p(File.join(@folder, "config"))
    File.write(File.join(@folder, "config/heddle.rb"), "on_booted { puts 'booted' }\n")
    served = ServedProcess.new([*RACKUP, "-s", "heddle", "-o", "127.0.0.1", "-p", "0"], folder: @folder)
    status, = Open3.capture2e(*ServedProcess::HEDDLE, "status", chdir: @folder)
    stopped, result = Open3.capture2e(*ServedProcess::HEDDLE, "stop", chdir: @folder)

    assert_match(/^ +0 +#{served.pid} /, status)
    assert_predicate result, :success?, stopped
    assert_predicate served.wait, :success?
    assert_match(/^booted$/, served.output)
  ensure
    served&.stop
  end

  # `rails restart` and `rails dev:cache` touch the file, and Puma's plugin restarts the server then.
  def test_a_touched_restart_file_is_answered_in_the_log
    FileUtils.mkdir_p(File.join(@folder, "tmp"))
    served = ServedProcess.new([*RACKUP, "-s", "heddle", "-o", "127.0.0.1", "-p", "0"], folder: @folder)
    served.get("/")
    FileUtils.touch(File.join(@folder, "tmp/restart.txt"))
    wait_for_output(served, "ignoring tmp/restart.txt: a server with one process can't reload. Stop it and start")
  ensure
    served&.stop
  end

  def test_limits_and_the_selector_are_set_by_name
    served = ServedProcess.new([*RACKUP, "-s", "heddle", "-o", "127.0.0.1", "-p", "0", "-O", "selector=epoll",
                                "-O", "header_limit=1k", "-O", "access_log"], folder: @folder)
    answer = Net::HTTP.start("127.0.0.1", served.uri.port) { |http| http.get("/", (1..9).to_h { |n| ["x-#{n}", "a" * 200] }) }

    assert_equal "431", answer.code
    assert_match(/, epoll\) serves/, served.output)
    served.stop

    assert_match(/ 431 rejected/, served.output)
  end

  def test_the_configuration_file_says_where_to_listen_when_the_command_line_does_not
    FileUtils.mkdir_p(File.join(@folder, "config"))
    File.write(File.join(@folder, "config/heddle.rb"), "bind '127.0.0.1:0'\nheader_limit '1k'\nworkers 2\n")
    served = ServedProcess.new([*RACKUP, "-s", "heddle"], folder: @folder)
    answer = Net::HTTP.start("127.0.0.1", served.uri.port) { |http| http.get("/", (1..9).to_h { |n| ["x-#{n}", "a" * 200] }) }

    assert_equal "431", answer.code
    assert_match(%r{serving with one process; the option workers \(config/heddle\.rb:3\) has an effect only with},
                 served.output)
    served.stop
    served = ServedProcess.new([*RACKUP, "-s", "heddle", "-o", "::1", "-p", "0"], folder: @folder)

    assert_equal "[::1]", served.uri.host
    served.stop
  end

  def test_defaults_of_rails_are_overridden_by_the_file_and_the_environment
    FileUtils.mkdir_p(File.join(@folder, "config"))
    File.write(File.join(@folder, "config/heddle.rb"), "port 4000\n")
    script = <<~'RUBY'
      require "rackup/handler/heddle"
      options = { Host: "localhost", Port: 3000, user_supplied_options: ARGV.map(&:to_sym) }
      options[:Port] = ENV["PORT"].to_i if ENV["PORT"]
      puts Rackup::Handler::Heddle.send(:configuration, options).binds.map { |bind| "#{bind.host}:#{bind.port}" }
    RUBY
    told = lambda do |*supplied, **environment|
      output, status = Open3.capture2(environment, RbConfig.ruby, "-I#{ROOT}/lib", "-e", script, *supplied,
                                      chdir: @folder)

      assert_predicate status, :success?
      output.chomp
    end

    assert_equal "localhost:4000", told.call("PORT" => nil)
    assert_equal "localhost:3000", told.call("Port", "PORT" => nil)
    assert_equal "localhost:5000", told.call("Port", "PORT" => "5000")
    FileUtils.rm(File.join(@folder, "config/heddle.rb"))

    assert_equal "localhost:3000", told.call("PORT" => nil)
  end

  def test_hosts_may_be_paths_and_urls_as_puma_takes_them
    script = <<~RUBY
      require "rackup/handler/heddle"
      ARGV.each do |host|
        options = { Host: host, Port: 3000, user_supplied_options: [:Host] }
        puts Rackup::Handler::Heddle.send(:configuration, options).bind
      end
    RUBY
    urls = { "ssl://localhost?cert=a&key=b" => "ssl://localhost:3000?cert=a&key=b",
             "ssl://127.0.0.1:4000?cert=a:5&key=b" => "ssl://127.0.0.1:4000?cert=a:5&key=b",
             "tcp://[::1]" => "tcp://[::1]:3000", "/tmp/a.sock" => "unix:/tmp/a.sock", "./a.sock" => "unix:./a.sock",
             "unix:a" => "unix:a", "::1" => "[::1]:3000" }
    output, status = Open3.capture2(RbConfig.ruby, "-I#{ROOT}/lib", "-e", script, *urls.keys, chdir: @folder)

    assert_predicate status, :success?
    assert_equal urls.values, output.lines(chomp: true)
  end

  def test_a_wrong_option_is_one_line
    output, status = Open3.capture2e(*RACKUP, "-s", "heddle", "-O", "head_timeout=soon", chdir: @folder)

    refute_predicate status, :success?
    assert_match(/\Aheddle: --head-timeout must be a number of seconds, but is "soon"\n\z/, output)
  end

  def test_a_port_that_is_taken_is_one_message
    taken = TCPServer.new("127.0.0.1", 0)
    command = [*RACKUP, "-s", "heddle", "-o", "127.0.0.1", "-p", taken.addr[1].to_s]
    output, status = Open3.capture2e(*command, chdir: @folder)

    refute_predicate status, :success?
    assert_match(/\Aheddle: .*#{taken.addr[1]}/, output)
    refute_match(/\.rb:\d+:in/, output)
  ensure
    taken&.close
  end

  def test_a_hook_that_fails_leaves_no_socket
    File.write(File.join(@folder, "heddle.rb"), "worker_boot { raise 'no' }\n")
    output, = Open3.capture2e(*RACKUP, "-s", "heddle", "-o", "unix:a.sock", chdir: @folder)

    assert_includes output, "heddle: the hook worker_boot failed: RuntimeError: no"
    refute_path_exists File.join(@folder, "a.sock")
  end

  def test_the_help_lists_every_option
    output, = Open3.capture2e(*RACKUP, "-s", "heddle", "-h", chdir: @folder)

    (Heddle::Options::BY_NAME.keys - %i[port config]).each { |name| assert_match(/^\s+-O #{name}\b/, output) }
  end

  def test_a_unix_socket_is_served
    path = File.join(@folder, "heddle.sock")
    input, output, thread = Open3.popen2e(*RACKUP, "-s", "heddle", "-o", "unix:#{path}", chdir: @folder)

    assert(output.each_line.any? { |line| line.include?("serves on unix:") })
    UNIXSocket.open(path) do |socket|
      socket.write("GET /b HTTP/1.0\r\n\r\n")

      assert_operator socket.read, :end_with?, "HTTP/1.0 at /b"
    end
    Process.kill(:TERM, thread.pid)

    assert thread.join(30), "it does not end"
  ensure
    input&.close
    output&.close
  end
end
