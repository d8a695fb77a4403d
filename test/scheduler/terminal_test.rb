# frozen_string_literal: true

require "test_helper"
require "heddle"
require "pty"
require "io/console"

# A terminal is a descriptor that blocks, and belongs to other processes as well.
class TerminalTest < Minitest::Test
  LONG = "a line of a long text\n" * 5_000

  def test_a_long_text_for_an_unread_terminal_delays_no_other_fiber
    read = Heddle.run do
      reader, terminal = PTY.open
      terminal.raw!
      writer = Heddle.async { terminal.write(LONG) }
      Heddle.async { nil }.wait

      refute_predicate writer, :ended?, "the text is longer than what the terminal has room for"
      text = reader.readpartial(1_000) # the loop has gone on
      text << reader.readpartial(10_000) while text.bytesize < LONG.bytesize
      writer.wait
      text
    end

    assert_equal LONG, read
  end

  def test_a_long_text_for_a_program_that_does_not_read_its_terminal_delays_no_other_fiber
    read = Heddle.run do
      keyboard, terminal = PTY.open
      terminal.raw!
      writer = Heddle.async { keyboard.write(LONG) }
      Heddle.async { nil }.wait

      refute_predicate writer, :ended?
      text = terminal.readpartial(1_000)
      text << terminal.readpartial(10_000) while text.bytesize < LONG.bytesize
      text
    end

    assert_equal LONG, read
  end

  def test_a_line_arrives_after_a_key_has_discarded_one
    read = Heddle.run do
      keyboard, terminal = PTY.open
      keyboard.write("half a line")
      echo = +""
      echo << keyboard.readpartial(100) until echo == "half a line" # so the kernel has brought it to the terminal
      terminal.iflush # as Ctrl-\ does
      reader = Heddle.async { terminal.gets }
      keyboard.write("a line\n")
      reader.value
    end

    assert_equal "a line\n", read
  end

  def test_each_end_of_a_pseudo_terminal_reads_what_the_other_has_written
    Heddle.run do
      keyboard, terminal = PTY.open
      terminal.raw!
      terminal.write("shown")

      assert_equal "shown", keyboard.readpartial(10)
      keyboard.write("typed")

      assert_equal "typed", terminal.readpartial(10)
    end
  end
end
