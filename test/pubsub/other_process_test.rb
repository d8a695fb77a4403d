# frozen_string_literal: true

require "test_helper"
require "tmpdir"

# Where a process publishes that does not belong to a server: each test's program is a process of its own.
class PubSubOtherProcessTest < Minitest::Test
  LIBRARY = File.expand_path("../../lib", __dir__)

  # Prints what each block returns, or the class of its error.
  PRELUDE = <<~RUBY
    require "heddle"
    PubSub = Heddle::PubSub
    def attempt
      puts yield.class
    rescue PubSub::UnreachableError => e
      puts e.message[/\\Athe message was not published|this process has no topics/]
    end
  RUBY

  NOT_PUBLISHED = "the message was not published"
  NO_TOPICS = "this process has no topics"

  def run_program(text, **environment)
    Dir.mktmpdir do |folder|
      IO.popen([environment.transform_keys(&:to_s), RbConfig.ruby, "-I", LIBRARY, "-e", PRELUDE + text,
                { chdir: folder, err: %i[child out] }], &:read).lines(chomp: true)
    end
  end

  def test_publish_raises_without_a_server_whether_a_loop_runs_or_not
    lines = run_program(<<~RUBY)
      attempt { PubSub.publish("room", "x") }
      Heddle.run { Heddle.map([1]) { attempt { PubSub.publish("room", "x") } } }
      attempt { PubSub.publish("room", "x") }
    RUBY

    assert_equal [NOT_PUBLISHED] * 3, lines
  end

  def test_publish_in_a_loop_raises_when_the_named_server_does_not_answer
    lines = run_program(<<~RUBY)
      PubSub.server = "unix:/nonexistent/heddle.sock"
      Heddle.run { attempt { PubSub.publish("room", "x") } }
    RUBY

    assert_equal [NOT_PUBLISHED], lines
  end

  def test_publish_in_a_loop_raises_when_the_server_of_the_environment_does_not_answer
    lines = run_program(<<~RUBY, HEDDLE_PUBSUB: "unix:/nonexistent/heddle.sock")
      Heddle.run { attempt { PubSub.publish("room", "x") } }
    RUBY

    assert_equal [NOT_PUBLISHED], lines
  end

  def test_a_named_server_wins_over_the_memory_of_the_process
    lines = run_program(<<~RUBY)
      PubSub.server = :process
      attempt { PubSub.publish("room", "x") }
      PubSub.server = "unix:/nonexistent/heddle.sock"
      Heddle.run { attempt { PubSub.publish("room", "x") } }
    RUBY

    assert_equal ["String", NOT_PUBLISHED], lines
  end

  # The messages of a server would not come here, and no position would be one of its positions.
  def test_subscribe_and_position_raise_without_a_server
    lines = run_program(<<~RUBY)
      Heddle.run do
        attempt { PubSub.subscribe("room") { nil } }
        attempt { PubSub.position("room") }
      end
    RUBY

    assert_equal [NO_TOPICS] * 2, lines
  end

  def test_process_publishes_to_its_own_subscribers_on_request
    lines = run_program(<<~RUBY)
      PubSub.server = :process
      Heddle.run do
        got = Thread::Queue.new
        PubSub.subscribe("room") { |message| got << message.data }
        PubSub.publish("room", "hello")
        puts got.pop
      end
    RUBY

    assert_equal ["hello"], lines
  end

  def test_memory_of_the_process_wins_over_the_environment
    lines = run_program(<<~RUBY, HEDDLE_PUBSUB: "unix:/nonexistent/heddle.sock")
      PubSub.server = :process
      attempt { PubSub.publish("room", "x") }
    RUBY

    assert_equal ["String"], lines
  end

  def test_server_rejects_an_unknown_address
    lines = run_program(<<~RUBY)
      PubSub.server = :proces
    RUBY

    assert_match(/"proces" is not an address/, lines.join("\n"))
  end
end
