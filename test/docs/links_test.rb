# frozen_string_literal: true

require "test_helper"

# Whatever a page refers to is there: other pages, their headings, and the project's files.
class LinksTest < Minitest::Test
  # Pages that git ignores, and those of gems, are not ours.
  PAGES = Dir.chdir(ROOT) { Dir["*.md", "{docs,examples,benchmark}/**/*.md"].sort }
  LINK = /\]\(([^)\s]+)\)/
  ELSEWHERE = /\A[a-z]+:/
  # Tests that a page names as what tries its words. (A page also speaks of files of the user's.)
  TEST = %r{`(test/[\w/.-]+)`}
  # Files and folders of the extension and of the library, with their folders, that the pages of the design name.
  SOURCE = %r{`([a-z]\w*/(?:\w+/)*(?:\w+\.(?:c|h|rb))?|\w+\.rb)`}

  def text(page) = File.read(File.join(ROOT, page)).gsub(/^```.*?^```$/m, "")

  # As GitHub makes an anchor of a heading.
  def anchors(page)
    text(page).scan(/^#+ (.*)$/).map do |heading,|
      heading.gsub(/\[([^\]]*)\]\([^)]*\)/, '\1').downcase.gsub(/[^\p{L}\p{N} _-]/, "").tr(" ", "-")
    end
  end

  # @return [String, nil] what is missing
  def missing(page, link)
    path, anchor = link.split("#", 2)
    target = path.empty? ? page : File.join(File.dirname(page), path)
    return "#{page}: there is no #{link}" unless File.exist?(File.join(ROOT, target))

    "#{page}: #{link} is no heading" if anchor && target.end_with?(".md") && !anchors(target).include?(anchor)
  end

  def test_links_lead_to_pages_and_headings_that_exist
    links = PAGES.flat_map { |page| text(page).scan(LINK).flatten.grep_v(ELSEWHERE).map { |link| [page, link] } }

    assert_operator links.size, :>, 100
    assert_empty(links.filter_map { |page, link| missing(page, link) })
  end

  def test_tests_that_pages_name_exist
    named = PAGES.flat_map { |page| text(page).scan(TEST).map { |path,| [page, path] } }

    assert_operator named.size, :>, 10
    assert_empty(named.reject { |_, path| File.exist?(File.join(ROOT, path)) })
  end

  def test_sources_that_the_pages_of_the_design_name_exist
    pages = PAGES.grep(%r{\Adocs/design})
    named = pages.flat_map { |page| text(page).scan(SOURCE).map { |path,| [page, path] } }

    assert_operator named.size, :>, 100
    roots = [ROOT, "#{ROOT}/ext/heddle", "#{ROOT}/lib/heddle"]
    assert_empty(named.reject { |_, path| roots.any? { |root| File.exist?(File.join(root, path)) } })
  end
end
