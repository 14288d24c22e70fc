// The version switch. The versions are beside each other in folders of one site: SITE/0.1.0/, SITE/0.2.0/ ..., with one
// SITE/versions.json. A page knows the versions of the day of its build; if the site has a newer list, that is shown.
// A single folder, or a page that is opened from the disk, has no such list: then the one of the build stays.
(() => {
  const choice = document.getElementById("version-switch");
  if (!choice) return;
  const here = choice.dataset.version;
  const root = new URL(choice.dataset.root || "./", document.location.href); // the folder of this version
  const site = new URL("../", root);

  const show = (versions) => {
    choice.disabled = versions.length < 2; // one version is a fact, not a choice
    choice.replaceChildren(
      ...versions.map(({ version, folder }) => {
        const option = document.createElement("option");
        option.value = folder;
        option.textContent = version;
        option.selected = version === here;
        return option;
      })
    );
  };

  const listed = (versions) =>
    Array.isArray(versions) &&
    versions.every((one) => typeof one.version === "string" && /^[\w.-]+$/.test(one.folder)) &&
    versions.some((one) => one.version === here);

  // The same page of another version if it is there, its front page if not.
  const go = async (folder) => {
    const front = new URL(`${folder}/index.html`, site);
    const page = new URL(`${folder}/${choice.dataset.page}`, site);
    const there = await fetch(page, { method: "HEAD" }).then((answer) => answer.ok, () => false);
    document.location.assign(there ? page : front);
  };

  choice.addEventListener("change", () => go(choice.value));
  if (document.location.protocol.startsWith("http")) {
    fetch(new URL("versions.json", site))
      .then((answer) => (answer.ok ? answer.json() : null))
      .then((versions) => listed(versions) && show(versions))
      .catch(() => {}); // no list: the one of the build stays
  }
})();
