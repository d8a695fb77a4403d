# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "socket"
require "timeout"

# Every step of the tutorial runs and does what it says.
class TutorialTest < Minitest::Test
  FOLDER = File.join(ROOT, "docs/tutorial")
  STEPS = Dir.children(FOLDER).grep(/\A\d\d_.*\.rb\z/).sort

  def test_there_are_ten_steps_and_the_text_names_each
    text = File.read(File.join(FOLDER, "README.md"))

    assert_equal (1..10).map { |n| format("%02d", n) }, STEPS.map { |name| name[0, 2] }
    STEPS.each { |name| assert_includes text, "(#{name})" }
  end

  def test_step_01_echoes_many_clients_at_once_and_ends_by_ctrl_c
    serve("01_echo_server.rb", 0) do |connect, output, pid|
      clients = Array.new(20) { connect.call }
      clients.each_with_index { |client, i| client.puts("hello #{i}") }
      assert_equal Array.new(20) { |i| "hello #{i}\n" }, clients.map(&:gets)
      Process.kill(:INT, pid)
      assert_nil clients.first.gets
      assert_equal "bye\n", output.read
    end
  end

  def test_step_02_a_hundred_responses_take_as_long_as_one
    out = run_program("02_many_clients.rb")

    assert_equal ["CLIENT 1", "CLIENT 100"], out.lines(chomp: true).first(2)
    assert_operator out[/100 answers in ([\d.]+) s/, 1].to_f, :<, 9, "one after the other they would take ten"
  end

  def test_step_03_disconnects_silent_clients
    serve("03_time_limits.rb", 0, 0.2) do |connect, *|
      client = connect.call
      client.puts("hello")
      assert_equal "hello\n", client.gets
      assert_equal "you said nothing for 0.2 s, good bye\n", client.gets
      assert_nil client.gets
    end
  end

  def test_step_04_a_failing_client_does_not_affect_others
    serve("04_failures.rb", 0) do |connect, output, *|
      good, bad = connect.call, connect.call
      bad.puts("nonsense")
      assert_nil bad.gets
      assert_match(/client \d: .*\((TypeError|ArgumentError|NoMethodError)\)/, output.gets)
      good.puts("2 + 3")
      assert_equal "5\n", good.gets
    end
  end

  def test_step_05_a_message_reaches_every_chat_client
    serve("05_chat.rb", 0) do |connect, *|
      ann, ben = join_chat(connect, "Ann"), join_chat(connect, "Ben")
      assert_equal "* Ben has come, 2 here\n", ann.gets
      ann.puts("hello")
      assert_equal ["Ann: hello\n"] * 2, [ann.gets, ben.gets]
      ann.close
      assert_equal "* Ann has gone\n", ben.gets
    end
  end

  def test_step_06_disconnects_the_slow_reader
    assert_equal ["quick has read message 20", "slow is too slow, and is gone"],
                 run_program("06_slow_readers.rb").lines(chomp: true).sort
  end

  def test_step_07_limits_the_clients_that_are_served
    serve("07_limits_and_ticks.rb", 0, 1) do |connect, output, *|
      first = connect.call
      assert_equal "come in\n", first.gets
      second = connect.call
      assert_equal "0 wait before you\n", second.gets
      assert_match(/inside, \d waiting/, output.gets)
      first.close
      assert_equal "come in\n", second.gets
    end
  end

  def test_step_08_fetches_at_once_and_takes_the_quicker_mirror
    out = run_program("08_fetching.rb")

    assert_operator out[/6 pages in ([\d.]+) s/, 1].to_f, :<, 2.9, "one after the other they would take three"
    assert_operator out[/mirror took ([\d.]+) s/, 1].to_f, :<, 9, "the slow one takes ten"
  end

  def test_step_09_crawls_the_whole_site
    assert_equal <<~TEXT, run_program("09_crawler.rb")
      /: 3 links
      /heddle: 3 links
      /loom: 3 links
      /missing: not found
      /shuttle: 1 links
      /warp: 2 links
      /weft: 2 links
      at most 3 pages at once
    TEXT
  end

  def test_step_10_its_tests_pass
    assert_match(/^4 runs, \d+ assertions, 0 failures, 0 errors, 0 skips$/, run_program("10_testing.rb"))
  end

  private

  def command(name, *arguments)
    [RbConfig.ruby, *$LOAD_PATH.map { |folder| "-I#{folder}" }, File.join(FOLDER, name), *arguments.map(&:to_s)]
  end

  def run_program(name)
    # Minitest would look for plugins in every installed gem.
    Timeout.timeout(30) { Open3.capture2({ "MT_NO_PLUGINS" => "1" }, *command(name)).first }
  end

  # Yields what connects to it, its output, and its process.
  def serve(name, *arguments)
    clients = []
    Timeout.timeout(30) do
      IO.popen(command(name, *arguments)) do |output|
        port = Integer(output.gets[/listening on 127\.0\.0\.1:(\d+)/, 1])
        yield -> { TCPSocket.new("127.0.0.1", port).tap { |client| clients << client } }, output, output.pid
      ensure
        Process.kill(:INT, output.pid)
      end
    end
  ensure
    clients.each(&:close)
  end

  def join_chat(connect, name)
    client = connect.call
    assert_equal "your name?\n", client.gets
    client.puts(name)
    assert_match(/\* #{name} has come/, client.gets)
    client
  end
end
