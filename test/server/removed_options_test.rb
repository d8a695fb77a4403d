# frozen_string_literal: true

require "test_helper"
require "heddle/cli"
require "heddle/server"
require "tmpdir"

class RemovedOptionsTest < Minitest::Test
  Configuration = Heddle::Server::Configuration
  Options = Heddle::Options

  def test_there_are_at_most_66_options
    assert_operator Options::ALL.size, :<=, 66
  end

  def test_removed_option_is_not_an_option
    assert_empty Options::REMOVED.keys & Options::BY_NAME.keys
  end

  def test_removed_option_in_a_file_is_an_error_that_says_what_holds_now
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "heddle.rb"), Options::REMOVED.keys.map { |name| "#{name} 1\n" }.join)
      error = assert_raises(Heddle::Server::ConfigurationError) { Configuration.load(environment: {}, folder:) }
      expected = Options::REMOVED.map.with_index(1) do |(name, text), line|
        "heddle.rb:#{line}: #{name} was removed: #{text}. Delete it"
      end

      assert_equal expected, error.message.lines(chomp: true)
    end
  end

  def test_removed_option_as_a_flag_is_an_error_that_says_what_holds_now
    Options::REMOVED.each do |name, text|
      flag = "--#{name.to_s.tr("_", "-")}"
      error = assert_raises(Heddle::CLI::UsageError) { Heddle::CLI::Flags.new(["#{flag}=1"]) }

      assert_equal "the flag #{flag} was removed: #{text}. Delete it.", error.message
    end
    error = assert_raises(Heddle::CLI::UsageError) { Heddle::CLI::Flags.new(["--no-reuse-port"]) }

    assert_match(/\Athe flag --no-reuse-port was removed: /, error.message)
  end

  def test_removed_option_of_rackup_is_an_error_that_says_what_holds_now
    require "rackup/handler/heddle"
    error = assert_raises(Heddle::Server::ConfigurationError) do
      Rackup::Handler::Heddle.configuration({ Host: "localhost", header_count: "3" })
    end

    assert_match(/\A-O header_count was removed: a request has 100 header lines/, error.message)
  end

  def test_help_for_a_removed_option_says_what_holds_now
    error = assert_raises(Heddle::CLI::UsageError) { Heddle::CLI::Help.for("alt_svc") }

    assert_match(/\Athe option alt_svc was removed: /, error.message)
  end

  def test_removed_option_in_the_environment_is_a_warning_that_says_what_holds_now
    warnings = Configuration.load(environment: { "HEDDLE_HTTP2_RESETS" => "7" }, file: nil).warnings

    assert_equal ["the environment variable HEDDLE_HTTP2_RESETS was removed: as many streams as http2_streams may be " \
                  "reset at once, then a third of that a second. Delete it"], warnings
  end
end
