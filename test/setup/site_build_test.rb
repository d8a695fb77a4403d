# frozen_string_literal: true

# test: nightly

require "test_helper"
require "open3"
require "tmpdir"

# bin/docs site with VitePress and YARD, which the first run installs. It fails for a link that leads nowhere.
class SiteBuildTest < Minitest::Test
  def test_site_has_each_page_the_api_reference_and_a_search
    need_program("npm")
    Dir.mktmpdir do |folder|
      said, status = Open3.capture2e(RbConfig.ruby, File.join(ROOT, "bin/docs"), "site", folder)

      assert_predicate status, :success?, said
      %w[index.html README.html docs/stalls.html api/Heddle/Channel.html].each do |page|
        assert_path_exists File.join(folder, page)
      end
      assert_includes File.read(File.join(folder, "api/Heddle/Channel.html")), "num_waiting"
      refute_empty Dir.glob(File.join(folder, "assets/chunks/@localSearchIndex*"))
    end
  end
end
