# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "tmpdir"
require_relative "../../bin/support/concerned_tests"

# Which tests depend on what has changed.
class ConcernedTestsTest < Minitest::Test
  FILES = { "test/test_helper.rb" => 'require "support/everywhere"', "test/net/a_test.rb" => "",
            "test/net/b_test.rb" => 'require "support/client"', "test/server/c_test.rb" => "",
            "test/server/support/case.rb" => 'require_relative "../../support/client"',
            "test/server/log/support/program.ru" => "", "test/examples/d_test.rb" => "",
            "test/rails/e_test.rb" => 'FOLDER = "examples/rails"',
            "test/net/f_test.rb" => 'File.expand_path("../server/log", __dir__)',
            "test/net/g_test.rb" => 'require_relative "../server/support/case"',
            "test/support/client.rb" => 'require_relative "port"', "test/support/port.rb" => '"support/client"',
            "test/support/a/client.rb" => "", "test/net/h_test.rb" => 'require "support/a/client"',
            "test/javascript/package.json" => "", "test/c/run" => "", "test/fuzz/i_test.rb" => "",
            "test/fuzz/corpus/dns/a_test" => "'\xFF'" }.freeze

  def setup
    @root = Dir.mktmpdir
    FILES.each do |path, content|
      FileUtils.mkdir_p(File.dirname(File.join(@root, path)))
      File.write(File.join(@root, path), content)
    end
  end

  def teardown = FileUtils.rm_rf(@root)

  def concerned(*changed) = ConcernedTests.new(@root, FILES.keys.grep(/_test\.rb/)).call(changed)&.sort

  def test_a_test_concerns_itself_if_it_is_there
    assert_equal %w[test/net/a_test.rb], concerned("test/net/a_test.rb", "test/net/gone_test.rb")
  end

  def test_another_file_of_the_tests_concerns_its_folder_and_those_that_name_it
    assert_equal %w[test/net/g_test.rb test/server/c_test.rb], concerned("test/server/support/case.rb")
  end

  def test_file_concerns_those_that_name_a_folder_around_it
    assert_equal %w[test/net/f_test.rb test/server/c_test.rb], concerned("test/server/log/support/program.ru")
  end

  def test_example_concerns_the_tests_of_examples_and_those_that_name_one
    assert_equal %w[test/examples/d_test.rb test/rails/e_test.rb], concerned("examples/rails/test/app_test.rb")
  end

  def test_file_of_support_concerns_those_that_name_it_or_what_names_it
    users = %w[test/net/b_test.rb test/net/g_test.rb test/server/c_test.rb]

    assert_equal users, concerned("test/support/client.rb")
    assert_equal users, concerned("test/support/port.rb")
    assert_equal %w[test/net/h_test.rb], concerned("test/support/a/client.rb")
  end

  def test_what_nothing_names_concerns_all_but_c_tests_which_have_stages_of_their_own
    assert_nil concerned("test/javascript/package.json")
    assert_nil concerned("test/support/gone.rb")
    assert_empty concerned("test/c/run", "test/c/heap_test.c")
    assert_equal %w[test/fuzz/i_test.rb], concerned("test/fuzz/corpus/dns/a_test")
  end

  def test_the_product_and_what_each_test_requires_concern_all
    assert_nil concerned("lib/heddle.rb")
    assert_nil concerned("test/net/a_test.rb", "test/support/everywhere.rb")
    assert_nil concerned("test/test_helper.rb")
  end
end
