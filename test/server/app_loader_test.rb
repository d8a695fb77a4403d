# frozen_string_literal: true

require "test_helper"
require "heddle/server"
require "minitest/mock"
require "tmpdir"

class AppLoaderTest < Minitest::Test
  def load(text = nil, name: "config.ru")
    Dir.mktmpdir do |folder|
      path = File.join(folder, name)
      File.write(path, text) if text
      yield path if block_given?
      return Heddle::Server::AppLoader.new(path).load
    end
  end

  def refused(...) = assert_raises(Heddle::Server::BootError) { load(...) }.message

  def test_an_application_is_loaded
    assert_equal [204, {}, []], load("run ->(env) { [204, {}, []] }").call({})
  end

  def test_a_folder_means_its_config_ru
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "config.ru"), "run ->(env) { [204, {}, []] }")

      assert_respond_to Heddle::Server::AppLoader.new(folder).load, :call
    end
  end

  def test_a_missing_file
    assert_match(%r{\Athere is no file .*/config.ru in .*heddle serve path/to/config.ru\z}, refused)
  end

  def test_a_file_that_may_not_be_read
    # Root may read everything, so the answer is made up.
    File.stub(:readable?, false) do
      assert_match(/can't be read by this user: its permissions are 0600/, refused("run nil") do |path|
        File.chmod(0o600, path)
      end)
    end
  end

  def test_a_syntax_error_names_its_line
    message = refused("run do |env|\n  [200, {}, [}\nend\n")

    assert_match(/config.ru can't be loaded because of a syntax error:/, message)
    assert_match(/config\.ru:2/, message)
    refute_match(%r{lib/heddle}, message)
  end

  def test_an_error_while_loading_shows_the_applications_lines_only
    message = refused("def boot = Nonsense.new\n\nboot\n")

    assert_match(/can't be loaded:\n  NameError: uninitialized constant .*Nonsense/, message)
    assert_match(/config\.ru:1/, message)
    assert_match(/config\.ru:3/, message)
    refute_match(%r{lib/heddle|rack/builder}, message)
  end

  def test_an_error_whose_message_raises_is_reported
    message = refused("error = StandardError.new\ndef error.message = raise(KeyError)\nraise error\n")

    assert_match(/can't be loaded:\n  StandardError: \(no message: message raised KeyError\)\n/, message)
  end

  def test_a_missing_library
    assert_match(/LoadError: cannot load such file -- no_such_library/, refused("require 'no_such_library'"))
  end

  def test_a_file_without_an_application
    assert_match(/neither `run` nor `map`/, refused("use Class.new\n"))
    assert_match(/does not respond to call/, refused("run Object.new\n"))
  end

  def test_an_exit_in_a_file_whose_path_is_not_utf8_is_described
    exit = SystemExit.new(3)
    exit.set_backtrace(["/srv/caf\xE9/app.rb:7:in '<main>'"])

    assert_match(/with status 3 \(.*app\.rb:7\)/, Heddle::Server::BootError.ended(exit).message)
  end

  def test_a_file_that_exits_is_obeyed
    assert_raises(SystemExit) { load("exit 3") }
  end
end
