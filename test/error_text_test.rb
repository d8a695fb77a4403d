# frozen_string_literal: true

require "test_helper"
require "heddle"

# How an exception is logged whose own methods may fail.
class ErrorTextTest < Minitest::Test
  ErrorText = Heddle::ErrorText

  # An exception whose message can't be made.
  class Broken < StandardError
    def initialize(failure)
      super()
      @failure = failure
    end

    def message = raise(@failure)
  end

  def raised(error)
    raise error
  rescue StandardError => e
    e
  end

  def raised_in_rescue
    raise KeyError
  rescue KeyError
    raised(RuntimeError.new)
  end

  def test_the_text_of_an_exception_is_as_ruby_prints_it
    error = raised(RuntimeError.new("no"))

    assert_equal ["RuntimeError", "no", error.full_message(highlight: false)],
                 %i[class_name message full].map { |name| ErrorText.public_send(name, error) }
  end

  def test_the_reason_of_a_system_error_has_no_function_and_no_path
    bare = Errno::EACCES.new.message
    errors = [Errno::EACCES.new("@ rb_sysopen - /srv/caf\xE9\nb"), Errno::EACCES.new("bind(2) for /srv/caf\xE9"),
              Errno::EACCES.new, StandardError.new("Permission denied @ io_write - caf\xE9")]

    assert_equal [bare] * 4, errors.map { |error| ErrorText.reason(error) }
  end

  def test_a_message_that_cannot_be_made_is_replaced_whatever_it_raises
    [RuntimeError, NotImplementedError, SystemStackError, Class.new(Exception)].each do |failure|
      error = raised(Broken.new(failure))
      instead = "(no message: message raised #{failure})"

      assert_equal instead, ErrorText.message(error)
      assert_match(/\A#{__FILE__}:\d+:.*: #{Regexp.escape("#{instead} (ErrorTextTest::Broken)")}\n\tfrom /,
                   ErrorText.full(error))
    end
  end

  # As that of a template's error without a cause.
  def test_a_backtrace_that_cannot_be_made_is_empty
    [NoMethodError, NotImplementedError].each do |failure|
      broken = Class.new(StandardError) { define_method(:backtrace) { raise failure } }

      assert_empty ErrorText.backtrace(raised(broken.new))
    end
    assert_equal __FILE__, ErrorText.backtrace(raised(RuntimeError.new)).first[/.*?(?=:)/]
    assert_empty ErrorText.backtrace(RuntimeError.new)
  end

  def test_of_a_backtrace_that_is_none_the_strings_are_kept
    { "a.rb:1" => ["a.rb:1"], [nil, "a.rb:1", 2] => ["a.rb:1"], 3 => [] }.each do |odd, kept|
      error = Class.new(StandardError) { define_method(:backtrace) { odd } }.new

      assert_equal kept, ErrorText.backtrace(error)
    end
  end

  def test_a_cause_that_cannot_be_had_is_none
    assert_nil ErrorText.cause(Class.new(StandardError) { def cause = raise(NotImplementedError) }.new)
    assert_nil ErrorText.cause(RuntimeError.new)
    assert_kind_of KeyError, ErrorText.cause(raised_in_rescue)
  end

  def test_an_exception_that_was_never_raised_has_a_full_text
    assert_equal "(no message: message raised KeyError) (ErrorTextTest::Broken)", ErrorText.full(Broken.new(KeyError))
  end

  def test_a_class_without_a_name_of_its_own_has_one
    error = Class.new(StandardError) { def self.to_s = raise(NotImplementedError) }.new("no")

    assert_equal "an exception", ErrorText.class_name(error)
  end

  def test_a_long_message_is_cut
    assert_equal "#{"x" * 16_384} ... (20000 bytes)", ErrorText.message(RuntimeError.new("x" * 20_000))
  end

  def test_a_long_full_text_is_cut_behind_the_place
    text = ErrorText.full(raised(RuntimeError.new("x" * 20_000)))

    assert_operator text.size, :<, 16_500
    assert_match(/\A#{__FILE__}:\d+:in .*x \.\.\. \(\d+ bytes\)\z/o, text)
  end

  def test_cancelling_passes
    %i[message full].each do |name|
      assert_raises(Heddle::Cancelled) { ErrorText.public_send(name, Broken.new(Heddle::Cancelled)) }
    end
  end
end
