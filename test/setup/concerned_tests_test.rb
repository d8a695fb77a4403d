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
            "test/examples/d_test.rb" => "" }.freeze

  def setup
    @root = Dir.mktmpdir
    FILES.each do |path, content|
      FileUtils.mkdir_p(File.dirname(File.join(@root, path)))
      File.write(File.join(@root, path), content)
    end
  end

  def teardown = FileUtils.rm_rf(@root)

  def concerned(*changed) = ConcernedTests.new(@root, FILES.keys.grep(/_test\.rb/)).call(changed)

  def test_a_test_concerns_itself_if_it_is_there
    assert_equal %w[test/net/a_test.rb], concerned("test/net/a_test.rb", "test/net/gone_test.rb")
  end

  def test_another_file_of_the_tests_concerns_its_folder
    assert_equal %w[test/server/c_test.rb], concerned("test/server/support/case.rb")
  end

  def test_an_example_concerns_the_tests_of_examples
    assert_equal %w[test/examples/d_test.rb], concerned("examples/chat/app.rb")
  end

  def test_a_file_of_support_concerns_those_that_require_it
    assert_equal %w[test/net/b_test.rb test/server/c_test.rb], concerned("test/support/client.rb").sort
  end

  def test_the_product_and_what_each_test_requires_concern_all
    assert_nil concerned("lib/heddle.rb")
    assert_nil concerned("test/net/a_test.rb", "test/support/everywhere.rb")
    assert_nil concerned("test/test_helper.rb")
  end
end
