# frozen_string_literal: true

require "application_system_test_case"

class PostsTest < ApplicationSystemTestCase
  test "a post is created, changed by Turbo and removed" do
    visit posts_url
    click_on "New post"
    fill_in "Title", with: "A title"
    fill_in "Body", with: "A text"
    click_on "Create Post"
    assert_text "Post was successfully created"
    click_on "Edit this post"
    fill_in "Title", with: "Another title"
    click_on "Update Post"
    assert_text "Another title"
    click_on "Destroy this post"
    assert_text "Post was successfully destroyed"
  end

  test "records of the test are seen by the server" do
    Post.create!(title: "made in the test", body: "x")
    visit posts_url
    assert_text "made in the test"
  end
end
