# frozen_string_literal: true

require "test_helper"
require "heddle/server"
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
