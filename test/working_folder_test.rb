# frozen_string_literal: true

require "test_helper"
require "heddle/server"
require "fileutils"
require "tmpdir"

# The name of the application's folder.
class WorkingFolderTest < Minitest::Test
  Folder = Heddle::WorkingFolder

  def test_the_name_of_the_shell_counts_where_it_is_that_of_this_folder
    Dir.mktmpdir do |folder|
      link = File.join(folder, "here")
      File.symlink(Dir.pwd, link)

      assert_equal link, Folder.current({ "PWD" => link })
      assert_equal Dir.pwd, Folder.current({ "PWD" => folder })
      assert_equal Dir.pwd, Folder.current({ "PWD" => "." })
      assert_equal Dir.pwd, Folder.current({})
    end
  end

  # systemd sets no PWD, and a shell that it starts sets one without the link.
  def test_the_link_of_a_release_counts_where_the_folder_is_named_without_it
    folder = File.realpath(Dir.mktmpdir)
    release = File.join(folder, "releases/7")
    FileUtils.mkdir_p([release, "#{folder}/releases/6", "#{folder}/others/7"])
    current = File.join(folder, "current")
    File.symlink("releases/7", current)

    Dir.chdir(release) do
      assert_equal [current, current], [{}, { "PWD" => release }].map { |environment| Folder.current(environment) }
    end
    Dir.chdir("#{folder}/releases/6") { assert_equal "#{folder}/releases/6", Folder.current({}) }
    Dir.chdir("#{folder}/others/7") { assert_equal "#{folder}/others/7", Folder.current({}) }
  ensure
    FileUtils.rm_rf(folder)
  end

  def test_a_gemfile_elsewhere_stays
    assert_empty Folder.new({ "BUNDLE_GEMFILE" => "/elsewhere/Gemfile" }).variables
    assert_empty Folder.new({}).variables
  end

  def test_folder_of_the_process_survives_its_deletion
    folder = File.realpath(Dir.mktmpdir)
    known = Dir.chdir(folder) do
      before = Folder.note
      Dir.rmdir(folder)
      [before, Folder.started, Folder.note]
    end

    assert_equal ["#{folder}/"] * 3, known
  ensure
    Folder.note
  end
end
