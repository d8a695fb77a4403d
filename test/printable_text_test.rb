# frozen_string_literal: true

require "test_helper"
require "heddle"
require "json"

# What a client or an application wrote, in a log or on a terminal.
class PrintableTextTest < Minitest::Test
  PrintableText = Heddle::PrintableText

  def test_ordinary_text_is_unchanged
    ["", "GET /a?b=ü", "tab\there", "日本", "it's 100 % “fine”", "\\x1B"].each do |text|
      assert_equal text, PrintableText.line(text)
    end
  end

  def test_control_characters_are_shown
    assert_equal 'a\x1B[31mb\x07\x00\x7F', PrintableText.line("a\e[31mb\a\0\x7F")
    assert_equal 'one\x0D\x0Atwo', PrintableText.line("one\r\ntwo")
    assert_equal '\x9B31m\x85', PrintableText.line("\u009B31m\u0085"), "C1: a terminal takes U+009B for ESC ["
  end

  # With them a client could make a line look like two, or the end of a line like its beginning.
  def test_line_ends_and_changes_of_direction_are_shown
    assert_equal 'a\u2028b\u2029\u202Ec\u202D\u2066\u2069',
                 PrintableText.line("a\u2028b\u2029\u202Ec\u202D\u2066\u2069")
  end

  def test_text_in_an_encoding_that_ruby_cannot_convert_becomes_utf8
    assert_equal 'a\xFF', PrintableText.line("a\xFF".b.force_encoding("UTF-7"))
  end

  def test_text_of_any_encoding_becomes_utf8
    assert_equal 'a\xFF\x9Bü', PrintableText.line("a\xFF\x9Bü"), "bytes that are no UTF-8"
    assert_equal 'ü\xFF', PrintableText.line("\xC3\xBC\xFF".b)
    assert_equal "ü", PrintableText.line("\xFC".dup.force_encoding(Encoding::ISO_8859_1))
    assert_equal 'ü\x1B', PrintableText.line("ü\e".encode(Encoding::UTF_16LE))
    assert_equal Encoding::UTF_8, PrintableText.line("a".b).encoding
    assert_equal ["", "7"], [PrintableText.line(nil), PrintableText.line(7)]
  end

  def test_every_line_after_the_first_is_indented
    assert_equal "one\n    two\n    \n    12:00:00 200 GET /", PrintableText.lines("one\r\ntwo\n\n12:00:00 200 GET /\n")
    assert_equal "one\ntwo\\x1B", PrintableText.lines("one\ntwo\e", indent: "")
    assert_equal 'one\x0Dtwo', PrintableText.lines("one\rtwo"), "a terminal would write over the line"
  end

  def test_json_stays_the_same_value
    value = ["\u007F\u009B\e\u202E\u2066", "ü"]
    text = PrintableText.json(JSON.generate(value))

    assert_equal value, JSON.parse(text)
    refute_match(/[\u007F-\u009F\u202E\u2066]/, text)
    assert_equal "[\n1]", PrintableText.json("[\n1]")
  end
end
