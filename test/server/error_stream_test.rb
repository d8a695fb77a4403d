# frozen_string_literal: true

require "test_helper"
require "heddle/server"
require "logger"
require "stringio"

# `rack.errors` works as the stream of other servers does.
class ErrorStreamTest < Minitest::Test
  def test_it_writes_the_arguments_that_an_io_writes
    reader, writer = IO.pipe
    output = StringIO.new
    stream = Heddle::Server::ErrorStream.new(output)
    sizes = [writer, stream].map { |one| one.write("é", "\xFF\n".b, [1, nil], :"\n") }
    stream.stop
    writer.close

    assert_equal sizes.first, sizes.last
    assert_equal reader.read.b, output.string.b
  ensure
    [reader, writer].each(&:close)
  end

  def test_a_logger_writes_to_it_and_does_not_close_it
    output = StringIO.new
    stream = Heddle::Server::ErrorStream.new(output)
    logger = Logger.new(stream)
    logger.warn("planted")
    logger.close
    stream.puts("after")
    stream.stop

    assert_match(/WARN -- : planted\nafter\n\z/, output.string)
  end
end
