# frozen_string_literal: true

# test: smoke

require "test_helper"
require "heddle/native"
require "open3"

class NativeTest < Minitest::Test
  def test_the_key_tells_rubies_and_variants_apart
    abi = "#{RbConfig::CONFIG["ruby_version"]}-#{RbConfig::CONFIG["arch"]}"

    assert_equal abi, Heddle::Native.key(nil)
    assert_equal abi, Heddle::Native.key("")
    assert_equal "#{abi}+debug", Heddle::Native.key("debug")
  end

  def test_a_build_that_is_missing_is_named_together_with_the_command_that_makes_it
    output, status = Open3.capture2e({ "HEDDLE_NATIVE" => "nosuch" }, RbConfig.ruby, "-Ilib", "-e",
                                     'require "heddle/native"', chdir: ROOT)

    refute_predicate status, :success?
    assert_includes output, "native/#{Heddle::Native.key("nosuch")}/heddle."
    assert_includes output, "bin/compile"
  end
end
