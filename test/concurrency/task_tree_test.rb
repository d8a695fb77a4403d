# frozen_string_literal: true

require_relative "support/loop_helpers"
require "pty"
require "rbconfig"

class TaskTreeTest < Minitest::Test
  include Heddle::LoopHelpers

  def test_shows_names_states_and_lines
    in_loop(name: "main") do
      Heddle.async(name: "fetcher") do
        Heddle.async(name: "connection") { forever }
        forever
      end
      Heddle.async(name: "pulse", background: true) { forever }
      Fiber.schedule { forever }
      turns
      @text = Heddle.task_tree.to_s
      Heddle::Task.current.children.each(&:cancel)
      Heddle::Concurrency::Context.of(Fiber.scheduler).cancel_unawaited
    end

    assert_match(/^main \(running\)$/, @text)
    assert_match(/^  fetcher \(waiting\)\n(      .*\n)*      .*task_tree_test\.rb:\d+:in/, @text)
    assert_match(/^    connection \(waiting\)\n(        .*\n)*        .*task_tree_test\.rb:\d+:in/, @text)
    assert_match(/^  pulse \(waiting, background\)$/, @text)
    assert_match(/^fiber \d+ \(waiting, not a task\)$/, @text)
    refute_includes @text, "lib/heddle"
  end

  def test_can_be_kept_short
    in_loop do
      Heddle.async(name: "deep") { [1].each { [1].each { forever } } }
      turns
      assert_equal 2, Heddle.task_tree(lines: 1).to_s[/^  deep.*/m].lines.size
      Heddle::Task.current.children.each(&:cancel)
    end
  end

  def test_needs_a_loop
    assert_raises(Heddle::NoLoopError) { Heddle.task_tree }
  end

  PROGRAM = <<~RUBY
    require "heddle"
    Heddle.run(name: "main") do
      Heddle.async(name: "waiting for godot") { Fiber.scheduler.park }
      puts "ready"
      gets
      Heddle::Task.current.children.each(&:cancel)
    end
    puts trap(Heddle::Concurrency::TreeSignal::NAME, "DEFAULT")
  RUBY

  # In a terminal, by the key: Ctrl-\\ sends SIGQUIT.
  def test_a_key_in_the_terminal_prints_it_and_the_handler_is_gone_afterwards
    skip "this system has SIGINFO" if Signal.list.key?("INFO")

    PTY.spawn(RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", "-e", PROGRAM) do |output, input, pid|
      read_until(output, "ready")
      input.write("\x1C")
      text = read_until(output, "waiting for godot")
      assert_match(/main \((waiting|running)\)/, text)
      input.puts
      read_until(output, "DEFAULT")
      Process.wait(pid)
    end
  end

  private

  def read_until(output, text)
    read = +""
    read << output.readpartial(1000) until read.include?(text)
    read
  end
end
