# frozen_string_literal: true

require "test_helper"
require "bundler"

# What bin/setup installs: gems of fixed versions, whose bytes are known.
class GemfileLockTest < Minitest::Test
  LOCK = File.join(ROOT, "Gemfile.lock")

  def test_each_gem_has_a_checksum
    text = File.read(LOCK)
    checksums = text[/^CHECKSUMS\n((?:  .*\n)*)/, 1].scan(/^  (.+) sha256=\h{64}$/).flatten
    gems = Bundler::LockfileParser.new(text).specs.reject { |spec| spec.source.is_a?(Bundler::Source::Path) }
                                  .map(&:lock_name)

    assert_operator gems.size, :>, 50
    assert_empty gems - checksums
  end

  def test_all_gems_are_from_the_source_that_the_gemfile_names
    source = File.read(File.join(ROOT, "Gemfile"))[/^source "(.+)"/, 1]

    assert_equal ["#{source}/"], File.read(LOCK).scan(/^  remote: (?!\.)(.+)$/).flatten.uniq
  end
end
