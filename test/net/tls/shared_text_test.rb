# frozen_string_literal: true

require "test_helper"
require "heddle/net/tls"
require "json"

# One process writes a text, and the processes that were forked read it.
class SharedTextTest < Minitest::Test
  def setup
    @text = Heddle::Net::TLS::SharedText.new(1_000)
  end

  # @return [Array] what the block returns in a forked process
  def in_child
    reader, writer = IO.pipe
    child = fork do
      writer.write(JSON.generate(yield))
      writer.close
      exit!(0)
    end
    writer.close
    Process.wait(child)
    JSON.parse(reader.read)
  ensure
    reader.close
  end

  def test_forked_process_reads_what_was_written_last
    @text.write("first".b)
    asked, ask = IO.pipe
    later = Thread.new { in_child { [asked.read(1), @text.version, @text.read] } }
    @text.write("a longer one".b)
    ask.write("x")

    assert_equal ["x", 2, "a longer one"], later.value
  end

  def test_too_long_text_leaves_the_former_one
    assert @text.write("x" * 1_000)
    refute @text.write("y" * 1_001)

    assert_equal [1, "x" * 1_000], [@text.version, @text.read]
  end

  def test_text_that_is_being_written_is_not_read
    @text.write("complete")
    @text.instance_variable_get(:@memory).set_string("half", 48)

    assert_nil @text.read
    assert @text.write("complete again")
    assert_equal "complete again", @text.read
  end
end
