# frozen_string_literal: true

require "test_helper"
require "digest"
require "fileutils"
require "json"
require "open3"
require "tmpdir"
require_relative "../../bin/support/release"

# The checklist of docs/releasing.md, in a repository of its own.
class ReleaseTest < Minitest::Test
  def setup
    @root = Dir.mktmpdir
    write("docs/releasing.md", File.read(File.join(ROOT, "docs/releasing.md")))
    write("lib/heddle/version.rb", %(VERSION = "0.1.0"\n))
    write("heddle.gemspec", %("homepage_uri" => "https://example.com"\n))
    write("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-12-01\n\nAll.\n")
    write(".gitignore", "pkg\n")
    git("init", "-q")
    record("passed", [])
  end

  def teardown = FileUtils.rm_rf(@root)

  def write(name, text)
    path = File.join(@root, name)
    FileUtils.mkdir_p(File.dirname(path))
    File.write(path, text)
  end

  def git(*arguments)
    author = %w[-c user.name=a -c user.email=a@example.com]
    output, status = Open3.capture2e("git", *author, *arguments, chdir: @root)
    assert_predicate status, :success?, output
    output.strip
  end

  def commit
    git("add", "-A")
    git("commit", "-q", "--allow-empty", "-m", "a")
    git("rev-parse", "HEAD")
  end

  # Results of the runs at the commit before.
  def record(result, problems)
    tested = commit
    write(".ci/nightly.json", JSON.generate(result:, commit: tested))
    write(".ci/soak.json", JSON.generate(hours: 2, commit: tested, problems:))
    commit
  end

  def package(content: "gem")
    sum = Digest::SHA256.hexdigest("gem")
    write("pkg/heddle-0.1.0.gem", content)
    write("pkg/SHA256SUMS", "#{sum}  heddle-0.1.0.gem\n")
  end

  def results = Release.new(root: @root).steps.to_h { |step| [step.name, step.good] }

  def test_every_item_of_the_page_is_walked_in_its_order
    numbered = File.read(File.join(ROOT, "docs/releasing.md"))[/^## Before\n(.*?)^## /m, 1].scan(/^\d+\. /).size

    assert_equal %i[tree nightly ci soak changelog addresses figures gems tag], results.keys
    assert_equal numbered, results.size
  end

  def test_complete_release_leaves_only_what_a_person_looks_at
    package

    assert_equal({ ci: nil, figures: nil }, results.reject { |_, good| good })
  end

  def test_changed_code_makes_the_runs_stale_and_changed_papers_and_comments_do_not
    write("docs/a.md", "text")
    write("lib/heddle/version.rb", %(VERSION = "0.1.0" # new\n))
    commit
    before = results
    write("lib/heddle/version.rb", %(VERSION = "0.1.0"; NEW = 1\n))
    commit

    assert_equal [true, true], before.values_at(:nightly, :soak)
    assert_equal [false, false], results.values_at(:nightly, :soak)
  end

  def test_failed_runs_are_missing
    record("incomplete", ["worker 0 grows"])

    assert_equal [false, false], results.values_at(:nightly, :soak)
  end

  def test_entries_under_unreleased_are_missing_in_the_changelog
    write("CHANGELOG.md", "## [Unreleased]\n\n- new\n\n## [0.1.0] - 2026-12-01\n\nAll.\n")

    refute results[:changelog]
    refute results[:tree]
  end

  def test_addresses_that_are_not_set_are_named
    write("heddle.gemspec", %("homepage_uri" => nil, "bug_tracker_uri" => nil\n))
    step = Release.new(root: @root).steps.find { |one| one.name == :addresses }

    assert_equal "missing  addresses: heddle.gemspec lacks homepage_uri, bug_tracker_uri", step.to_s
  end

  def test_gem_whose_sum_differs_or_which_is_not_built_is_missing
    refute results[:gems]
    package(content: "other")

    refute results[:gems]
  end

  def test_tag_that_exists_is_missing
    git("tag", "v0.1.0")

    refute results[:tag]
  end

  def test_command_changes_nothing_and_says_so_without_dry_run
    _, errors, status = Open3.capture3(File.join(ROOT, "bin/release"))

    assert_equal [1, true], [status.exitstatus, errors.include?("bin/release: it only walks")]
  end
end
