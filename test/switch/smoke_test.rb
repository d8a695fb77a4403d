# frozen_string_literal: true

# test: long

require "test_helper"
require "open3"
require "support/bundle"
require "tmpdir"

# An application of `rails new` before and after it is switched from Puma: the checks that take a minute. The others are
# the nightly run's (test/switch/run).
class SwitchSmokeTest < Minitest::Test
  HERE = __dir__
  private_constant :HERE

  def test_an_application_is_under_heddle_as_it_was_under_puma
    skip "needs the gems of test/switch/rails: bin/setup" unless Bundle.installed?(File.join(HERE, "rails/Gemfile"))
    Dir.mktmpdir do |folder|
      output, status = Open3.capture2e(RbConfig.ruby, File.join(HERE, "run"), "--smoke", "--folder", folder, "rails")

      assert_predicate status, :success?, output
      assert_match(/^6 passed, 0 failed$/, output)
    end
  end
end
