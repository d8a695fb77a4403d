# frozen_string_literal: true

require "test_helper"
require "heddle/command_line"
require "tempfile"

class CommandLineTest < Minitest::Test
  PROGRAM = ["/app/bin/heddle", "serve", "-b", ""].freeze

  def test_the_options_of_ruby_are_kept
    typed = ["ruby3.4", "--yjit", "-I", "lib", *PROGRAM]

    assert_equal typed, read(typed)
  end

  def test_a_text_that_the_program_has_set_is_not_taken_for_a_command_line
    assert_equal [RbConfig.ruby, *PROGRAM], read(["/app/bin/heddle serve -b", "", "", ""])
    assert_equal [RbConfig.ruby, "/app/bin/heddle"], read(["/app/bin/heddle", "", ""], program: ["/app/bin/heddle"])
  end

  def test_arguments_that_are_not_utf8_are_kept
    program = ["/app/bin/heddle", "caf\xE9/config.ru"]
    typed = ["ruby3.4", "--yjit", *program]

    assert_equal typed.map(&:b), read(typed, program:)
  end

  def test_where_the_system_reports_none_it_is_that_of_the_program
    assert_equal [RbConfig.ruby, *PROGRAM], Heddle::CommandLine.read("/does/not/exist", program: PROGRAM)
  end

  private

  def read(words, program: PROGRAM)
    Tempfile.create do |file|
      file.write(words.map { |word| "#{word}\0" }.join)
      file.flush
      Heddle::CommandLine.read(file.path, program:)
    end
  end
end
